"""The operator's commands: what each does and says, what each mistake costs, and no word of secrets."""

import pytest

import auth
from models import ApiKey, User, db
from tests.cast import PASSWORD

SECRET = "a pass phrase of nobody"


@pytest.fixture
def run(app):
    """Run a command: `run("user", "list", typed="...")` gives (exit code, what it said)."""

    def invoke(*args, typed=None):
        done = app.test_cli_runner().invoke(args=args, input=typed)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert PASSWORD not in done.output
        assert SECRET not in done.output
        return done.exit_code, done.output

    return invoke


def told(app, name):
    """(role, disabled) of an account, or None."""
    with app.app_context():
        user = User.named(name)
        return user and (user.role, user.disabled_at is not None)


def signs_in(call, name, password):
    return call("POST", "/auth/login", {"username": name, "password": password}).status_code == 200


def signed_in(call, name):
    """Whether the session that the person had before still lives."""
    return call("GET", "/users/me", user=name).status_code == 200


def works(call, name):
    """Whether the person's API key is accepted."""
    return call("POST", "/knowledge", {}, key=name).status_code == 422


# Accounts


def test_add_makes_an_account_that_signs_in(run, call):
    """The name is trimmed; the first line is the password, whatever ends it."""
    typed = f"{SECRET}\r\nnot this\n"
    code, said = run("user", "add", " nora ", "--role", "reviewer", "--password-stdin", typed=typed)
    assert (code, said) == (0, "Made reviewer nora.\n")
    assert told(call.app, "nora") == ("reviewer", False)
    assert signs_in(call, "nora", SECRET)


def test_add_asks_for_the_password_twice_and_shows_nothing_of_it(run, call):
    typed = f"{SECRET}\nanother\n{SECRET}\n{SECRET}\n"
    code, said = run("user", "add", "nora", typed=typed)
    assert code == 0
    assert "do not match" in said
    assert said.endswith("Made contributor nora.\n")
    assert "another" not in said
    assert signs_in(call, "nora", SECRET)


def test_the_first_account_of_all_is_an_admin(make_app, new_database):
    there = new_database()
    app = make_app(**there)
    said = []
    for name in ("first", "second"):
        args = ["user", "add", name, "--password-stdin"]
        said.append(app.test_cli_runner().invoke(args=args, input=SECRET).output)
    made = f"cq made the database {there['CQ_DB_PATH']}\n" if "CQ_DB_PATH" in there else ""
    assert said[0] == f"{made}Made admin first (the first account is an admin).\n"
    assert said[1].endswith("Made contributor second.\n")
    assert told(app, "first") == ("admin", False)


def test_add_refuses_what_is_no_account(run, call):
    """A taken name is exit code 1; a name or role that cannot be is a misuse, exit code 2."""
    code, said = run("user", "add", "carl", "--role", "admin", "--password-stdin", typed=SECRET)
    assert (code, said) == (1, "Error: This username is taken\n")
    assert told(call.app, "carl") == ("contributor", False)
    for name in ("", "  ", "no\nra", "\u200b", "x" * 65):
        code, said = run("user", "add", name, "--password-stdin", typed=SECRET)
        assert code == 2, name
        assert "NAME" in said
    code, said = run("user", "add", "nora", "--role", "owner", "--password-stdin", typed=SECRET)
    assert code == 2
    assert "owner" in said
    assert "reviewer" in said
    code, said = run("user", "add", "--password-stdin", typed=SECRET)
    assert code == 2
    assert "NAME" in said
    assert told(call.app, "nora") is None


def test_a_password_that_cannot_be_kept_is_one_line_and_exit_code_1(run, call):
    """Blank, longer than bcrypt reads, or one that no login could send."""
    for command, name in (("add", "nora"), ("passwd", "carl")):
        for password in ("", "\n", "   \n", "x" * 73, "é" * 37, "a\0b"):
            code, said = run("user", command, name, "--password-stdin", typed=password)
            assert code == 1, password
            assert said.startswith("Error: ")
            assert said.count("\n") == 1
            assert password.strip() not in said or not password.strip()
    assert told(call.app, "nora") is None
    assert signed_in(call, "carl")


def test_a_password_that_is_no_text_is_one_line_and_exit_code_1(run, call):
    """Such as one in Latin-1; nothing of it is shown, not even as a number."""
    code, said = run("user", "passwd", "carl", "--password-stdin", typed=b"caf\xe9 au lait\n")
    assert code == 1
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    assert "e9" not in said
    assert signed_in(call, "carl")


def test_passwd_sets_a_password_and_ends_sessions(run, call):
    code, said = run("user", "passwd", "carl", "--password-stdin", typed=f"{SECRET}\n")
    assert (code, said) == (0, "The password of carl is changed.\n")
    assert not signed_in(call, "carl")
    assert signs_in(call, "carl", SECRET)
    assert works(call, "carl")


def test_giving_up_at_the_prompt_changes_nothing(run, call):
    code, said = run("user", "passwd", "carl", typed=f"{SECRET}\n")
    assert code == 1
    assert "Aborted" in said
    assert signed_in(call, "carl")


def test_role_gives_another_role_and_ends_sessions(run, call):
    code, said = run("user", "role", "carl", "reviewer")
    assert (code, said) == (0, "carl is reviewer now.\n")
    assert told(call.app, "carl") == ("reviewer", False)
    assert not signed_in(call, "carl")
    code, said = run("user", "role", "carl", "owner")
    assert code == 2
    assert "owner" in said
    assert run("user", "role", "carl")[0] == 2
    assert told(call.app, "carl") == ("reviewer", False)


def test_disable_shuts_an_account_and_its_keys_out_until_enable(run, call):
    assert works(call, "carl")
    code, said = run("user", "disable", "carl")
    assert code == 0
    assert said == "carl can no longer sign in, and the keys of carl no longer work.\n"
    assert told(call.app, "carl") == ("contributor", True)
    assert not signed_in(call, "carl")
    assert not works(call, "carl")
    code, said = run("user", "enable", "carl")
    assert (code, said) == (0, "carl can sign in again.\n")
    assert told(call.app, "carl") == ("contributor", False)
    assert works(call, "carl")
    assert not signed_in(call, "carl")


def test_delete_asks_first_and_keeps_what_was_proposed(run, call):
    unit = call.approve()
    for typed in ("n\n", "\n", ""):
        code, said = run("user", "delete", "carl", typed=typed)
        assert code == 1
        assert "Delete the account and its keys?" in said
    assert told(call.app, "carl") is not None
    assert works(call, "carl")
    code, said = run("user", "delete", "carl", typed="y\n")
    assert code == 0
    assert said.endswith("carl is deleted.\n")
    assert told(call.app, "carl") is None
    assert not works(call, "carl")
    assert not signed_in(call, "carl")
    left = call("GET", f"/review/{unit['id']}", user="rita").json
    assert (left["status"], left["knowledge_unit"]["created_by"]) == ("approved", "carl")
    assert run("user", "delete", "cleo", "--yes") == (0, "cleo is deleted.\n")


def test_the_last_admin_is_kept_from_every_command(run, call):
    for args, said in (
        (["role", "ada", "reviewer"], "The last admin stays an admin; make another one first"),
        (["disable", "ada"], "The last admin stays an admin; make another one first"),
        (["delete", "ada", "--yes"], "The last admin cannot be deleted; make another one first"),
    ):
        assert run("user", *args) == (1, f"Error: {said}\n")
    assert told(call.app, "ada") == ("admin", False)
    assert signed_in(call, "ada")
    assert run("user", "role", "rita", "admin")[0] == 0
    assert run("user", "delete", "ada", "--yes")[0] == 0


def test_an_account_that_is_not_there_is_one_line_and_exit_code_1(run):
    for args in (
        ["user", "passwd", "nobody", "--password-stdin"],
        ["user", "role", "nobody", "admin"],
        ["user", "disable", "nobody"],
        ["user", "enable", "nobody"],
        ["user", "delete", "nobody", "--yes"],
        ["key", "list", "nobody"],
        ["key", "revoke", "nobody", "0" * 32],
    ):
        assert run(*args, typed=SECRET) == (1, "Error: User not found\n"), args


def test_list_shows_every_account_with_its_role_and_state(run):
    run("user", "disable", "cleo")
    code, said = run("user", "list")
    assert code == 0
    rows = [line.split() for line in said.splitlines()]
    assert [(row[0], row[1], row[3:]) for row in rows] == [
        ("ada", "admin", []),
        ("carl", "contributor", []),
        ("cleo", "contributor", ["disabled"]),
        ("rita", "reviewer", []),
    ]
    assert "$2b$" not in said


def test_list_shows_more_accounts_than_one_page_holds(run, app):
    with app.app_context():
        rows = [
            {
                "username": f"user{number:04}",
                "password_hash": "x",
                "role": "contributor",
                "session_version": 1,
                "created_at": "x",
            }
            for number in range(1100)
        ]
        db.session.execute(User.__table__.insert(), rows)
        db.session.commit()
    names = [line.split()[0] for line in run("user", "list")[1].splitlines()]
    assert names == sorted(["ada", "carl", "cleo", "rita", *(row["username"] for row in rows)])


# Keys


def test_key_list_shows_each_key_and_its_state_and_no_token(run, call):
    with call.app.app_context():
        id, secret = auth.new_key()
        hashed = auth.key_hash(secret)
        ApiKey.add(User.find("carl").id, "old", [], "1s", -1, id, secret[:8], hashed)
        db.session.commit()
    made = call("POST", "/users/me/api-keys", {"name": "ci", "ttl": "1d"}, user="carl").json
    call("POST", f"/users/me/api-keys/{made['id']}/revoke", user="carl")
    call("GET", "/knowledge?domains=x", key="carl")
    code, said = run("key", "list", "carl")
    assert code == 0
    newest, old, first = said.splitlines()
    for line, words in (
        (newest, [made["id"], made["prefix"], "revoked", "ci", "never"]),
        (old, [id, secret[:8], "expired", "old", "never"]),
        (first, [call.keys["carl"].split(".")[2], "active", "first"]),
    ):
        assert all(word in line for word in words), line
    assert "never" not in first
    for token in (made["token"], call.keys["carl"]):
        assert token.rpartition(".")[2] not in said
    assert run("key", "list", "cleo")[1].count("\n") == 1


def test_key_revoke_ends_a_key(run, call):
    id = call.keys["carl"].split(".")[2]
    for _ in range(2):
        assert run("key", "revoke", "carl", id) == (0, "The key is revoked.\n")
        assert not works(call, "carl")
    assert run("key", "list", "carl")[1].split()[2] == "revoked"


def test_a_key_that_is_not_there_or_not_theirs_is_one_line_and_exit_code_1(run, call):
    foreign = call.keys["cleo"].split(".")[2]
    for id in (foreign, "0" * 32, "x", foreign.upper()):
        assert run("key", "revoke", "carl", id) == (1, "Error: API key not found\n")
    assert run("key", "revoke", "carl")[0] == 2
    assert run("key", "list")[0] == 2
    assert works(call, "cleo")


# What any command does


def test_every_command_has_help_and_every_group_lists_its_own(run, app):
    for group, commands in (
        ("user", ["add", "passwd", "role", "disable", "enable", "list", "delete"]),
        ("key", ["list", "revoke"]),
    ):
        assert sorted(app.cli.commands[group].commands) == sorted(commands)
        said = run(group, "--help")[1]
        for command in commands:
            assert command in said
            code, help = run(group, command, "--help")
            assert code == 0
            assert "Usage:" in help
        code, said = run(group, "nonsense")
        assert code == 2
        assert "nonsense" in said


@pytest.mark.slow
def test_a_locked_database_is_one_line_and_exit_code_1(run, call, home, database):
    with home.held(database):
        code, said = run("user", "role", "carl", "reviewer")
        assert code == 1
        assert said.startswith("Error: ")
        assert said.count("\n") == 1
        assert "lock" in said
        assert run("user", "list")[0] == 0
    assert told(call.app, "carl") == ("contributor", False)
    assert run("user", "role", "carl", "reviewer")[0] == 0
