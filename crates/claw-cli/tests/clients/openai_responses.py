"""The official OpenAI client against the gateway's responses: create, stream, calls, previous responses, errors."""

import sys

import openai

url, key = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)

first = client.responses.create(model="agent:default", input="one", metadata={"from": "a test"})
assert first.output_text == "You said: one", first
assert first.status == "completed" and first.id.startswith("resp_"), first
assert first.usage.total_tokens > 0 and first.metadata == {"from": "a test"}, first

second = client.responses.create(model="agent:default", input="two", previous_response_id=first.id)
assert second.output_text == "You said: two", second
assert second.previous_response_id == first.id
again = client.responses.retrieve(second.id)
assert again.output_text == "You said: two" and again.status == "completed", again
assert again.usage.total_tokens == second.usage.total_tokens, again

items = [
    {"role": "user", "content": "three"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "You said: three"}]},
    {"role": "user", "content": [{"type": "input_text", "text": "four"}]},
]
whole = client.responses.create(model="agent:default", input=items, instructions="Be brief.")
assert whole.output_text.endswith("four"), whole

words, kinds, last = "", [], None
with client.responses.stream(model="agent:default", input="five") as stream:
    for event in stream:
        kinds.append(event.type)
        if event.type == "response.output_text.delta":
            words += event.delta
    last = stream.get_final_response()
assert words == "You said: five" == last.output_text, (words, last)
assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
assert "response.output_item.done" in kinds, kinds

calls = client.responses.create(model="agent:default", input="list the files")
made = [item for item in calls.output if item.type == "mcp_call"]
assert [item.name for item in made] == ["list_files"] and made[0].output is not None, calls
assert calls.output[-1].type == "message" and "there are" in calls.output_text, calls


def refused(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind} was not raised")


ask = client.responses.create
refused(openai.NotFoundError, lambda: ask(model="agent:nobody", input="x"))
refused(openai.NotFoundError, lambda: ask(model="default", input="x", previous_response_id="resp_1"))
says = refused(openai.ConflictError, lambda: ask(model="default", input="x", previous_response_id=first.id))
assert "the session has continued" in says, says
refused(openai.BadRequestError, lambda: ask(model="default", input=""))
says = refused(openai.BadRequestError, lambda: ask(model="default", input=[{"type": "function_call_output", "call_id": "1", "output": "2"}]))
assert "no call has the id" in says, says
stranger = openai.OpenAI(base_url=f"{url}/v1", api_key="claw_" + "0" * 64, max_retries=0)
refused(openai.AuthenticationError, lambda: stranger.responses.create(model="default", input="x"))
print("ok")
