"""A client of the conformance suite: our binary, driven as a person would drive it.

Usage: mcp_conformance_client.py BINARY URL

Adds the server, logs in where it wants a login (the address that is printed is opened as a browser would), and calls each
of its tools. MCP_CONFORMANCE_CONTEXT may carry a client that is registered already.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

BINARY, URL = sys.argv[1], sys.argv[2]
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
# The most logins after the first one; a server that wants ever more rights is given up.
MOST_STEPS = 2
METADATA = "https://conformance-test.local/client-metadata.json"

home = tempfile.mkdtemp()
project = os.path.join(home, "project")
os.mkdir(project)
env = {
    "HOME": home,
    "PATH": os.environ["PATH"],
    "USER": "ann",
    "CLAWSMITH_DATA_DIR": os.path.join(home, "data"),
    "CLIENT_SECRET": CONTEXT.get("client_secret", ""),
}


def run(*words):
    done = subprocess.run([BINARY, *words], env=env, cwd=project, capture_output=True, text=True, timeout=60)
    print(words, done.returncode, done.stdout[:2000], done.stderr[:2000], file=sys.stderr)
    return done


def login(scopes=(), again=1):
    words = [BINARY, "mcp", "login", "s"]
    for scope in scopes:
        words += ["--scope", scope]
    if CONTEXT.get("client_secret"):
        words += ["--client-secret", "CLIENT_SECRET"]
    child = subprocess.Popen(words, env=env, cwd=project, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, text=True)
    for line in child.stderr:
        print("login:", line.strip(), file=sys.stderr)
        if line.strip().startswith("http"):
            try:
                urllib.request.urlopen(line.strip(), timeout=20).read()
            except urllib.error.URLError as error:
                print("browser:", error, file=sys.stderr)
                child.kill()
            break
    rest = child.stderr.read()
    print("login:", rest, file=sys.stderr)
    if child.wait(timeout=60) == 0:
        return True
    # A server may move to another authorization server between two requests; a person would log in once more.
    return again > 0 and "log in again" in rest and login(scopes, again - 1)


def value(schema):
    """A value that a schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: value(part) for name, part in schema.get("properties", {}).items()}
    return {"string": "text", "number": 1.5, "integer": 2, "boolean": True, "array": [], "null": None}.get(kind, "text")


def answer(approval):
    """Answers a request for input: fields that are required and have no default get a value."""
    shown = json.loads(run("approvals", "show", approval, "--json").stdout)
    schema = (shown["request"] if "request" in shown else shown)["input"].get("schema", {})
    fields = schema.get("properties", {})
    wanted = [name for name in schema.get("required", []) if "default" not in fields.get(name, {})]
    words = [f"{name}={json.dumps(given) if not isinstance(given := value(fields[name]), str) else given}" for name in wanted]
    run("approvals", "answer", approval, *words)


def call_waiting(*words):
    """Makes a call, and answers the requests for input that it waits for."""
    child = subprocess.Popen([BINARY, "tools", "call", "--wait", *words], env=env, cwd=project, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    for line in child.stderr:
        said.append(line)
        if "waits for approval `" in line:
            answer(line.split("waits for approval `", 1)[1].split("`", 1)[0])
    done = subprocess.CompletedProcess(words, 0, child.stdout.read(), "".join(said))
    done.returncode = child.wait(timeout=60)
    print(words, done.returncode, done.stdout[:2000], done.stderr[:2000], file=sys.stderr)
    return done


def wanted_calls(tools):
    """The calls that the scenario wants, or one of each tool."""
    if "toolCalls" in CONTEXT:
        return [(call["name"], call["arguments"]) for call in CONTEXT["toolCalls"]]
    schema = lambda tool: dict((tool["accepted"] or {}).get("inputSchema") or {}, type="object")
    return [(tool["name"], value(schema(tool))) for tool in tools]


def call(name, args):
    """Calls a tool, with another login where it wants one; whether that worked."""
    for step in range(MOST_STEPS + 1):
        done = call_waiting("mcp_s_" + name, json.dumps(args))
        said = done.stdout + done.stderr
        if "nothing is fetched" in said:
            return True  # A schema that refers to another address is refused, as it has to be.
        if "mcp login s" not in said or step == MOST_STEPS:
            return done.returncode == 0
        wanted = said.split("mcp login s", 1)[1].split("`", 1)[0].split()
        if not login([word for word in wanted if word != "--scope"]):
            return False
    return False


added = run("mcp", "add", "s", URL)
if added.returncode != 0 and "--oauth" in added.stderr:
    words = ["mcp", "add", "s", URL, "--oauth"]
    if CONTEXT.get("client_id"):
        words += ["--client-id", CONTEXT["client_id"]]
    elif "cimd" in SCENARIO:
        words += ["--client-id", METADATA]
    run(*words)
    if not login():
        sys.exit(1)
elif added.returncode != 0:
    sys.exit(1)
tools = json.loads(run("mcp", "tools", "s", "--json").stdout)
sys.exit(0 if all([call(name, args) for name, args in wanted_calls(tools)]) else 1)
