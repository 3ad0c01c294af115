"""The official OpenAI client with tools of its own: called by the agent, made here, their results sent back."""

import json
import sys

import openai

url, key = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
schema = {"type": "object", "properties": {"precise": {"type": "boolean"}}}
tools = [{"type": "function", "function": {"name": "locate", "description": "Where the user is.", "parameters": schema}}]

# Chat completions: the loop of OpenAI's own guide, without any header of ours.
messages = [{"role": "user", "content": "where am I"}]
answer = client.chat.completions.create(model="agent:default", messages=messages, tools=tools)
choice = answer.choices[0]
assert choice.finish_reason == "tool_calls" and choice.message.content == "Let me ask.", answer
call = choice.message.tool_calls[0]
assert call.function.name == "locate" and json.loads(call.function.arguments) == {"precise": True}, call
messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "Paris"}]
answer = client.chat.completions.create(model="agent:default", messages=messages, tools=tools)
assert answer.choices[0].message.content == "You are in Paris.", answer
assert answer.choices[0].finish_reason == "stop", answer

# Streaming: the client assembles the call of its deltas.
messages = [{"role": "user", "content": "where am I"}]
with client.chat.completions.stream(model="agent:default", messages=messages, tools=tools) as stream:
    for event in stream:
        pass
    final = stream.get_final_completion().choices[0]
assert final.finish_reason == "tool_calls", final
call = final.message.tool_calls[0]
assert json.loads(call.function.arguments) == {"precise": True}, call
messages += [final.message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "Oslo"}]
words = ""
for chunk in client.chat.completions.create(model="agent:default", messages=messages, tools=tools, stream=True):
    words += chunk.choices[0].delta.content or "" if chunk.choices else ""
assert words == "You are in Oslo.", words

# Responses, once by the previous response and once with the whole input.
functions = [{"type": "function", "name": "locate", "description": "Where the user is.", "parameters": schema, "strict": False}]
first = client.responses.create(model="agent:default", input="where am I", tools=functions)
call = [item for item in first.output if item.type == "function_call"][0]
assert first.status == "completed" and call.name == "locate", first
assert first.tools[0].name == "locate", first
kept = client.responses.retrieve(first.id)
assert [item.call_id for item in kept.output if item.type == "function_call"] == [call.call_id], kept
output = [{"type": "function_call_output", "call_id": call.call_id, "output": "Lima"}]
second = client.responses.create(model="agent:default", input=output, previous_response_id=first.id, tools=functions)
assert second.output_text == "You are in Lima.", second

items = [{"role": "user", "content": "where am I"}]
with client.responses.stream(model="agent:default", input=items, tools=functions) as stream:
    kinds = [event.type for event in stream]
    final = stream.get_final_response()
assert "response.function_call_arguments.done" in kinds, kinds
items += [item.to_dict() for item in final.output]
call = [item for item in final.output if item.type == "function_call"][0]
items += [{"type": "function_call_output", "call_id": call.call_id, "output": "Kyiv"}]
whole = client.responses.create(model="agent:default", input=items, tools=functions)
assert whole.output_text == "You are in Kyiv.", whole

try:
    client.responses.create(model="agent:default", input=output, previous_response_id=whole.id)
    raise AssertionError("an old call took a result")
except openai.BadRequestError as error:
    assert "session" in str(error), error
print("ok")
