"""What secrets, personal data, internal places and directives look like.

Formats are those that the issuers publish. Placeholders are none: what names itself an example or a
variable, or repeats a sign.
"""

import math
import re
from collections import Counter
from functools import cache

# (what it is, pattern). What is matched may have no blank in it, so a run is read once.
ISSUED = (
    ("an AWS access key id", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    ("a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b"),
    ("a GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{60,255}\b"),
    ("a GitLab token", r"\bgl(?:pat|dt|rt|ptt|ft|soat)-[A-Za-z0-9_-]{20,255}"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{20,255}"),
    ("a Slack webhook", r"\bhooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,}"),
    ("a Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}\b"),
    ("a Google API key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("a Google OAuth secret", r"\bGOCSPX-[A-Za-z0-9_-]{28}"),
    ("an Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{24,255}"),
    ("an OpenAI key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{40,255}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("a PyPI token", r"\bpypi-AgE[A-Za-z0-9_-]{50,255}"),
    ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("a Twilio key", r"\bSK[0-9a-f]{32}\b"),
    ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{34}\b"),
    ("a DigitalOcean token", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    ("a Vault token", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,255}"),
    ("a Telegram bot token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    ("an Azure storage key", r"\bAccountKey=[A-Za-z0-9+/]{80,}={0,2}"),
    ("an API key of cq", r"\bcqa\.v1\.[0-9a-f]{32}\.[A-Za-z0-9_-]{16,255}"),
    ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,}"),
    ("a private key", r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
)  # fmt: skip
# (what it is, pattern with the value as its only group)
SAID = (
    ("a password in an address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"`]{0,64}:([^\s/@'\"`]{3,128})@"),
    ("a bearer token", r"(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{20,2000})"),
    ("a login", r"(?i)\bauthorization[\"']?:[ \t]*[\"']?basic[ \t]+([A-Za-z0-9+/]{12,}={0,2})"),
    (
        "a password or token",
        r"(?i)(?:password|passwd|secret|token|api_?key|access_?key|private_?key|client_?secret)"
        r"[\"']?[ \t]{0,4}(?::=|=|:)[ \t]{0,4}[\"']?([^\s\"'`,;<>(){}\[\]]{12,256})",
    ),
)  # fmt: skip
_PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|changeme|change_me|redacted|your|dummy|sample|secret|password|"
    r"passwd|token|\.\.\.|xxx|\*\*\*|\$|%\(|\{|<|todo|fake|foo|bar|1234567|abcdef|process\.env|os\.environ"
)
# Random letters and digits have more than this, words less. Bits a sign.
ENTROPY = 3.2

EMAIL = (
    r"(?<![\w.+-])([A-Za-z0-9][\w.+-]{0,63})@([A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})\b"
)
RESERVED = re.compile(
    r"(?i)(?:^|\.)(?:example\.(?:com|org|net)|example|test|invalid|localhost|local|internal)$"
)
NOBODY = re.compile(r"(?i)^(?:no-?reply|do-?not-?reply|git|user|me|you|name|someone|alice|bob)$")
# A package or an image is no mailbox: name@1.2.3, module@v2.
VERSION = re.compile(r"^v?\d")
PHONE = r"(?<![\w+.])\+(?:[1-9]\d{0,2})[ .()-]{0,2}\d(?:[ .()-]{0,2}\d){6,12}(?![\w.])"
CARD = r"(?<![\w.-])(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|3[47]\d{2}|6011|65\d{2})(?:[ -]?\d){9,15}(?![\w.-])"
IBAN = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"

ADDRESS = (
    r"(?<![\w.-])(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}"
    r"|169\.254(?:\.\d{1,3}){2})(?![\w.]*\w)"
)  # fmt: skip
ADDRESS_6 = r"(?i)(?<![\w:])(?:f[cd][0-9a-f]{2}|fe80):(?:[0-9a-f]{0,4}:){1,7}[0-9a-f]{0,4}(?![\w:])"
# The services of clouds that are the same for everybody, and the nets that documents explain.
COMMON = {
    "169.254.169.254",
    "169.254.170.2",
    "10.0.0.0",
    "192.168.0.0",
    "172.16.0.0",
    "169.254.0.0",
}
BEFORE_VERSION = re.compile(r"(?i)(?:\bv|\bversions?|\brelease|[=<>~^]=?)\s*$")
HOST = r"(?i)(?<![\w.@-])((?:[a-z0-9-]{1,63}\.){1,8}(?:internal|corp|lan|intranet|home\.arpa))(?![\w-]|\.\w|\()"
COMMON_HOSTS = re.compile(
    r"(?i)^(?:host|gateway|kubernetes|metadata\.google|[\w.]*example)\.(?:docker\.)?internal$"
)
HOME = r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})([A-Za-z][\w.-]{1,31})(?=[/\\])"
ANYBODY = re.compile(
    r"(?i)^(?:user|username|users|you|your.*|me|name|runner|node|ubuntu|debian|vscode|app|admin|"
    r"root|home|linuxbrew|jovyan|shared|public|default|git|circleci|travis|jenkins|vagrant|ec2-user|"
    r"example|foo|bar|coder|dev|developer|container|postgres|www-data|someone|alice|bob)$"
)

DIRECTIVES = (
    r"(?i)\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all|your|system)\b"
    r"[^.\n]{0,40}\b(?:instructions?|prompts?|rules|guidelines|directions)\b",
    r"(?i)\byou are now (?:a|an|in|the|my|going)\b",
    r"(?i)\b(?:reveal|print|repeat|show|output|leak)\b[^.\n]{0,30}\b(?:your (?:system )?(?:prompt|instructions)|the system prompt)\b",
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?INST\]|<</?SYS>>",
    r"(?im)^\s*(?:#{1,6}\s*)?(?:system|assistant)\s*(?:prompt|message)?\s*:\s*\S",
    r"(?i)\b(?:do not|don't|never) (?:tell|inform|mention|reveal|show)\b[^.\n]{0,30}\b(?:the )?(?:user|human|reviewer)\b",
    r"(?i)\bwithout (?:asking|telling|informing|confirmation from|approval from) (?:the )?(?:user|human)\b",
    r"(?i)\b(?:as an ai|dear (?:ai|model|assistant|agent))\b",
)  # fmt: skip


@cache
def _compiled(pattern):
    # Compiled at the first use: a start of the command line that checks nothing pays nothing.
    return re.compile(pattern)


def secrets(text):
    """What secrets a text holds, in words."""
    for what, pattern in ISSUED:
        for match in _compiled(pattern).finditer(text):
            if not _stands_for(match.group()):
                yield what
                break
    for what, pattern in SAID:
        for match in _compiled(pattern).finditer(text):
            value = match.group(1)
            strict = what != "a password in an address"
            if not _PLACEHOLDER.search(value) and (not strict or _random(value)):
                yield what
                break


def _stands_for(value):
    """Whether it only shows what one looks like: documented examples, or a sign repeated."""
    if value.endswith(("PRIVATE KEY-----", "BLOCK-----")):
        return False
    return "EXAMPLE" in value or re.search(r"(?i)example|xxxx|(.)\1{7}", value) is not None


def _random(value):
    """Whether it is no word, path, number or name of something: letters and digits at random."""
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return mixed and "/" not in value[:1] and value.count(".") < 3 and _entropy(value) >= ENTROPY


def _entropy(value):
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())


def personal(text):
    """What tells who somebody is, in words."""
    for match in _compiled(EMAIL).finditer(text):
        name, host = match.groups()
        if not (RESERVED.search(host) or NOBODY.match(name) or VERSION.match(host)):
            yield "an e-mail address"
            break
    if _compiled(PHONE).search(text):
        yield "a phone number"
    for match in _compiled(CARD).finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if 14 <= len(digits) <= 16 and _luhn(digits):
            yield "a card number"
            break
    for match in _compiled(IBAN).finditer(text):
        if _iban(match.group().replace(" ", "")):
            yield "a bank account number"
            break


def _luhn(digits):
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _iban(text):
    """ISO 7064: the number that the letters spell leaves 1 by 97."""
    return (
        15 <= len(text) <= 34
        and int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1
    )


def internal(text):
    """What only means something inside one network or on one machine, in words."""
    for match in _compiled(ADDRESS).finditer(text):
        address = match.group()
        parts = address.split(".")
        version = BEFORE_VERSION.search(text[max(0, match.start() - 12) : match.start()])
        if address not in COMMON and all(int(part) < 256 for part in parts) and not version:
            yield "a private address"
            break
    if _compiled(ADDRESS_6).search(text):
        yield "a private address"
    for match in _compiled(HOST).finditer(text):
        if not COMMON_HOSTS.match(match.group(1)):
            yield "a host of an internal network"
            break
    for match in _compiled(HOME).finditer(text):
        if not ANYBODY.match(match.group(1)):
            yield "a home folder that names a person"
            break


def directives(text):
    """Whether it addresses the model that reads it."""
    if any(_compiled(pattern).search(text) for pattern in DIRECTIVES):
        yield "text that addresses the model that reads it"
