"""Schemathesis against the gateway: requests made from the OpenAPI document, valid and not, and checks of the answers."""

import subprocess
import sys
import tempfile

url, key = sys.argv[1], sys.argv[2]
checks = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "ignored_auth",
]
command = [
    sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json",
    "-H", f"Authorization: Bearer {key}",
    "--checks", ",".join(checks),
    "--phases", "examples,coverage,fuzzing",
    "--max-examples", "10",
    "--max-time", "45",
    "--request-timeout", "10",
    "--workers", "1",
    "--seed", "1",
    "--no-shrink",
    "--continue-on-failure",
    "--suppress-health-check", "all",
    "--warnings", "off",
    # A protocol of its own; a WebSocket; streams without an end; servers anywhere on the network.
    "--exclude-path", "/mcp", "--exclude-path", "/v1/ws", "--exclude-path", "/v1/mcp/requests/events",
    "--exclude-path", "/v1/events",
    "--exclude-operation-id", "mcp.add",
]
# A fault of the Python interpreter (3.11) that ends the maker of requests now and then, whatever it is run against.
INTERPRETER = "AST constructor recursion depth mismatch"
for _ in range(3):
    with tempfile.TemporaryDirectory() as directory:
        ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=150)
    if ran.returncode == 0 or INTERPRETER not in ran.stdout:
        break
if ran.returncode != 0:
    print(ran.stdout[-20000:], ran.stderr[-5000:])
    sys.exit(1)
print(ran.stdout[-1500:], file=sys.stderr)
print("ok")
