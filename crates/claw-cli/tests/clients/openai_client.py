"""The official OpenAI client against the gateway: chat, streaming, sessions, errors."""

import sys

import openai

url, key = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)

assert "agent:default" in [model.id for model in client.models.list()]

hello = [{"role": "user", "content": "one"}]
answer = client.chat.completions.create(model="agent:default", messages=hello)
assert answer.choices[0].message.content == "You said: one", answer
assert answer.choices[0].finish_reason == "stop"
assert answer.usage.total_tokens > 0

stream = client.chat.completions.create(
    model="agent:default",
    messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "two"}],
    stream=True,
    stream_options={"include_usage": True},
)
words, used = "", None
for chunk in stream:
    if chunk.choices:
        words += chunk.choices[0].delta.content or ""
    used = chunk.usage or used
assert words.endswith("two"), words
assert used.total_tokens > 0

raw = client.chat.completions.with_raw_response.create(model="default", messages=hello)
session = raw.headers["x-clawsmith-session"]
again = client.chat.completions.create(
    model="default",
    messages=hello + [{"role": "assistant", "content": "x"}, {"role": "user", "content": "three"}],
    extra_headers={"x-clawsmith-session": session},
)
assert again.choices[0].message.content == "You said: three", again


def refused(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind} was not raised")


ask = client.chat.completions.create
refused(openai.NotFoundError, lambda: ask(model="agent:nobody", messages=hello))
refused(openai.BadRequestError, lambda: ask(model="default", messages=[]))
stranger = openai.OpenAI(base_url=f"{url}/v1", api_key="claw_" + "0" * 64, max_retries=0)
refused(openai.AuthenticationError, lambda: stranger.models.list())
print("ok")
