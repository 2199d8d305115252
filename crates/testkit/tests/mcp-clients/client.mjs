// The MCP TypeScript client against the fixture. Each check that holds is named on a line of its own; the first that does not
// ends the program.
//
//   node client.mjs MODULES legacy|auto http URL TOKEN
//   node client.mjs MODULES legacy|auto stdio PROGRAM ARGUMENT...

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [modules, mode, wire, ...target] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const ENVELOPE = 'io.runyard/envelope';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

function transport() {
  if (wire === 'stdio') {
    return new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: 'inherit' });
  }
  const [url, token] = target;
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  });
}

// What a person says to a form; without one the client says that it can show none.
async function connected(answer) {
  const capabilities = answer ? { elicitation: { form: {} } } : {};
  const client = new Client({ name: 'tests', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
  if (answer) client.setRequestHandler('elicitation/create', async (request) => answer(request));
  await client.connect(transport());
  return client;
}

// On the newer wire each request says what it wants to hear; on the older one the session does.
const logging = mode === 'auto' ? { _meta: { [LOG_LEVEL]: 'debug' } } : {};
const texts = (result) => result.content.map((block) => block.text);
const code = (result) => result._meta[ENVELOPE].error?.code;

const checks = {
  async 'the revision is the one that was asked for'(client) {
    assert.equal(client.getNegotiatedProtocolVersion(), mode === 'auto' ? '2026-07-28' : '2025-11-25');
    assert.equal(client.getServerVersion().name, 'mcp-fixture');
  },

  async 'tools are listed in one order, with hints and schemas'(client) {
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    assert.deepEqual(names, [...names].sort());
    const erase = tools.find((tool) => tool.name === 'erase');
    assert.deepEqual(erase.inputSchema.required, ['what']);
    const hints = { title: 'Erase', readOnlyHint: false, destructiveHint: true, idempotentHint: false };
    assert.deepEqual(erase.annotations, hints);
    assert.ok(!names.includes('test_simple_prompt'), 'a prompt is no tool');
  },

  async 'a tool is called'(client) {
    const result = await client.callTool({ name: 'greet', arguments: { name: 'Ada' } });
    assert.deepEqual(texts(result), ['Hello, Ada!']);
    assert.equal(result._meta[ENVELOPE].data, 'Hello, Ada!');
    assert.equal(result._meta[ENVELOPE].meta.surface, 'mcp');
  },

  async 'a tool is called without arguments'(client) {
    const result = await client.callTool({ name: 'test_simple_text' });
    assert.deepEqual(texts(result), ['This is a simple text response for testing.']);
  },

  async 'many calls at once get their own answers'(client) {
    const people = Array.from({ length: 50 }, (_, number) => `person ${number}`);
    const results = await Promise.all(people.map((name) => client.callTool({ name: 'greet', arguments: { name } })));
    assert.deepEqual(results.map((result) => texts(result)[0]), people.map((name) => `Hello, ${name}!`));
  },

  async 'a failure is a result to be read'(client) {
    const result = await client.callTool({ name: 'test_error_handling', arguments: {} });
    assert.equal(result.isError, true);
    assert.equal(code(result), 'TEST_FAILED');
    assert.equal(JSON.parse(texts(result)[0]).error.code, 'TEST_FAILED');
  },

  async 'a wrong argument is a result to be read'(client) {
    const result = await client.callTool({ name: 'greet', arguments: { name: 5 } });
    assert.equal(result.isError, true);
    assert.equal(code(result), 'VALIDATION_ERROR');
  },

  async 'resources are listed and read'(client) {
    const { resources } = await client.listResources();
    assert.ok(resources.some((resource) => resource.uri === 'test://static-text'));
    const { contents } = await client.readResource({ uri: 'test://static-text' });
    assert.equal(contents[0].text, 'This is the content of the static text resource.');
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.deepEqual(resourceTemplates.map((template) => template.uriTemplate), ['test://template/{id}/data']);
    const made = await client.readResource({ uri: 'test://template/7/data' });
    assert.equal(JSON.parse(made.contents[0].text).id, '7');
    await assert.rejects(client.readResource({ uri: 'test://nothing' }), /no such resource/);
  },

  async 'prompts are listed and got'(client) {
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.some((prompt) => prompt.name === 'test_prompt_with_arguments'));
    const got = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } });
    assert.equal(got.messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'");
  },

  async 'progress arrives, and only grows'(client) {
    const heard = [];
    const onprogress = (progress) => heard.push(progress);
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress });
    assert.deepEqual(heard.map(({ message }) => message), ['Starting', 'Halfway', 'Complete']);
    assert.ok(heard.every(({ progress, total }, at) => total === 100 && progress > (heard[at - 1]?.progress ?? -1)));
  },

  async 'logs arrive'(client) {
    const heard = [];
    client.setNotificationHandler('notifications/message', ({ params }) => heard.push(params));
    await client.callTool({ name: 'test_tool_with_logging', arguments: {}, ...logging });
    const said = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
    assert.deepEqual(heard.map(({ data }) => data.message), said);
    assert.ok(heard.every(({ level, logger }) => level === 'info' && logger === 'test_tool_with_logging'));
  },

  async 'cancellation reaches the action'(client) {
    const abort = new AbortController();
    client.setNotificationHandler('notifications/message', ({ params }) => {
      if (params.data.message === 'hanging') abort.abort('enough');
    });
    const call = client.callTool({ name: 'hang', arguments: {}, ...logging }, { signal: abort.signal });
    await assert.rejects(call);
    assert.ok(abort.signal.aborted, 'it ended by itself');
    const over = await client.callTool({ name: 'hang_over', arguments: {} });
    assert.deepEqual(texts(over), ['A call of hang is over.']);
  },

  async 'a change of a watched resource is told, and of no other'(client) {
    const uri = 'test://watched-resource';
    const heard = [];
    const told = new Promise((resolve) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(heard.push(params.uri)));
    });
    const listening = mode === 'auto' ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
    if (!listening) await client.subscribeResource({ uri });
    await client.callTool({ name: 'change_watched', arguments: {} });
    await told;
    assert.deepEqual(heard, [uri]);
    await (listening ? listening.close() : client.unsubscribeResource({ uri }));
  },

  async 'a person who says yes confirms a destructive action'() {
    const asked = [];
    const client = await connected(({ params }) => {
      asked.push(params);
      return { action: 'accept', content: { confirm: true } };
    });
    const result = await client.callTool({ name: 'erase', arguments: { what: 'everything' } });
    assert.deepEqual(result.structuredContent, { erased: 'everything' });
    assert.equal(asked.length, 1);
    assert.match(asked[0].message, /Run "erase"\?[^]*everything/);
    assert.deepEqual(asked[0].requestedSchema.required, ['confirm']);
    await client.close();
  },

  async 'whatever else a person says does not confirm it'() {
    const answers = [
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'accept', content: { confirm: false } },
    ];
    for (const answer of answers) {
      const client = await connected(() => answer);
      const result = await client.callTool({ name: 'erase', arguments: { what: 'everything' } });
      assert.equal(code(result), 'CONFIRMATION_REQUIRED', JSON.stringify(answer));
      await client.close();
    }
  },

  async 'a client that can show no form is told what is missing'(client) {
    const result = await client.callTool({ name: 'erase', arguments: { what: 'everything' } });
    assert.equal(code(result), 'CONFIRMATION_REQUIRED');
  },

  async 'an action asks in the middle and goes on with the answer'() {
    const said = { name: 'Ada', color: 'green' };
    const client = await connected(({ params }) => {
      const [field] = Object.keys(params.requestedSchema.properties);
      return { action: 'accept', content: { [field]: said[field] } };
    });
    const result = await client.callTool({ name: 'test_input_required_result_multi_round', arguments: {} });
    assert.deepEqual(texts(result), ['Ada likes green']);
    await client.close();
  },
};

// What a program tells of changes it says to its own server; this one has no such server on stdio.

const client = await connected();
if (mode === 'legacy') await client.setLoggingLevel('debug');
for (const [name, check] of Object.entries(checks)) {
  try {
    await check(client);
  } catch (error) {
    throw new Error(`not so: ${name}`, { cause: error });
  }
  console.log(name);
}
await client.close();
