// An MCP server made with @modelcontextprotocol/server: over its standard input and output, or behind Node's own HTTP
// server. There the argument says what becomes of a protocol older than 2026-07-28: it is rejected, or served without
// sessions. Usage: node mcp.mjs stdio, PORT=… node mcp.mjs reject|stateless
import { createServer } from 'node:http';
import { Readable } from 'node:stream';

import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

function make() {
  const server = new McpServer({ name: 'typescript-peer', version: '1.0.0' });
  for (const name of ['first', 'second']) {
    server.registerTool(name, { description: `The ${name} tool.` }, async () => ({
      content: [{ type: 'text', text: name }],
    }));
  }
  return server;
}

function serveHTTP(legacy) {
  const handler = createMcpHandler(make, { legacy });
  createServer(async (req, res) => {
    const body = req.method === 'GET' || req.method === 'HEAD' ? undefined : Readable.toWeb(req);
    const response = await handler.fetch(
      new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers, body, duplex: 'half' }),
    );
    res.writeHead(response.status, Object.fromEntries(response.headers));
    if (!response.body) return res.end();
    Readable.fromWeb(response.body).pipe(res);
  }).listen(Number(process.env.PORT), '127.0.0.1');
}

const mode = process.argv[2];
if (mode === 'stdio') serveStdio(make);
else serveHTTP(mode);
