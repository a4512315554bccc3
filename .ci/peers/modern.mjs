// An MCP server that speaks 2026-07-28 and nothing older: the handler of @modelcontextprotocol/server behind Node's own
// HTTP server. Usage: PORT=… node modern.mjs
import { createServer } from 'node:http';
import { Readable } from 'node:stream';

import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';

const handler = createMcpHandler(
  () => {
    const server = new McpServer({ name: 'modern-peer', version: '1.0.0' });
    for (const name of ['first', 'second']) {
      server.registerTool(name, { description: `The ${name} tool.` }, async () => ({
        content: [{ type: 'text', text: name }],
      }));
    }
    return server;
  },
  { legacy: 'reject' },
);

createServer(async (req, res) => {
  const body = req.method === 'GET' || req.method === 'HEAD' ? undefined : Readable.toWeb(req);
  const response = await handler.fetch(
    new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers, body, duplex: 'half' }),
  );
  res.writeHead(response.status, Object.fromEntries(response.headers));
  if (!response.body) return res.end();
  Readable.fromWeb(response.body).pipe(res);
}).listen(Number(process.env.PORT), '127.0.0.1');
