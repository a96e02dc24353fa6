"""The official SDK's client: goes through a list of calls of a server, and prints what came of it.

Standard input is JSON: `command`, `args`, `env`, `cwd` of a server on stdio, or `url` and `token`; `revision`, `calls` with `tool` and `arguments`, `answers` to
what the user is asked, in turn, the last one for all that follows; `seconds` that anything may take; `explore` with the
`prompt` to get, its `arguments`, the `uri` to follow, and the `tool` and `tool_arguments` that change it.
"""

import asyncio
import json
import sys

import jsonschema
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

import mcp.client.session
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ElicitResult, PromptReference


def plain(model):
    return model.model_dump(mode='json', by_alias=True, exclude_none=True)


def check_schema(tool, schema):
    try:
        jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f'a schema of the tool {tool.name} is not valid') from error


async def all_tools(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    for tool in tools:
        check_schema(tool, tool.input_schema)
        if tool.output_schema is not None:
            check_schema(tool, tool.output_schema)
    return tools


async def call(client, number, asked, told):
    async def progress(done, total, message):
        told.append({'call': number, 'progress': done, 'total': total, 'message': message})

    try:
        result = await client.call_tool(asked['tool'], asked['arguments'], progress_callback=progress)
    except MCPError as error:
        return {'error': plain(error.error)}
    return plain(result)


async def explore(client, asked, seconds):
    resources, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        resources += page.resources
        cursor = page.next_cursor
        if cursor is None:
            break
    templates = await client.list_resource_templates()
    prompts = await client.list_prompts()
    reference = PromptReference(type='ref/prompt', name=asked['prompt'])
    report = {
        'resources': [plain(resource) for resource in resources],
        'templates': [plain(template) for template in templates.resource_templates],
        'contents': [plain(await client.read_resource(resource.uri)) for resource in resources],
        'prompts': [plain(prompt) for prompt in prompts.prompts],
        'prompt': plain(await client.get_prompt(asked['prompt'], asked['arguments'])),
        'completion': plain(await client.complete(reference, {'name': 'context', 'value': 's'})),
    }
    if client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        async with client.listen(resource_subscriptions=[asked['uri']]) as changes:
            await client.call_tool(asked['tool'], asked['tool_arguments'])
            event = await asyncio.wait_for(anext(changes), seconds)
            report['change'] = {'kind': type(event).__name__, 'uri': str(event.uri)}
    return report


async def main():
    given = json.load(sys.stdin)
    answers, elicitations, told = given['answers'], [], []

    async def elicit(context, params):
        elicitations.append(plain(params))
        return ElicitResult.model_validate(answers.pop(0) if len(answers) > 1 else answers[0])

    mode = given['revision']
    if mode in HANDSHAKE_PROTOCOL_VERSIONS:
        # The SDK accepts each of these, but has no setting for which one it offers.
        mcp.client.session.LATEST_HANDSHAKE_VERSION = mode
        mode = 'legacy'
    if 'url' in given:
        http = create_mcp_http_client(headers={'Authorization': f"Bearer {given['token']}"})
        server = streamable_http_client(given['url'], http_client=http)
    else:
        server = StdioServerParameters(
            command=given['command'], args=given['args'], env=given['env'], cwd=given['cwd'])
    client = Client(
        server, mode=mode, read_timeout_seconds=given['seconds'], elicitation_callback=elicit if answers else None)
    async with client:
        tools = await all_tools(client)
        results = [await call(client, number, asked, told) for number, asked in enumerate(given['calls'])]
        report = {
            'protocolVersion': client.protocol_version,
            'serverInfo': plain(client.server_info) if client.server_info else None,
            'capabilities': plain(client.server_capabilities),
            'instructions': client.instructions,
            'tools': [plain(tool) for tool in tools],
            'results': results,
            'progress': told,
            'elicitations': elicitations,
        }
        if 'explore' in given:
            report['explored'] = await explore(client, given['explore'], given['seconds'])
    print(json.dumps(report))


asyncio.run(main())
