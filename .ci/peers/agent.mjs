// An A2A agent made with @a2a-js/sdk: protocol 1.0 and, by its own layer for older clients, 0.3.
// Usage: PORT=… node agent.mjs
import { AGENT_CARD_PATH } from '@a2a-js/sdk';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

const url = `http://127.0.0.1:${process.env.PORT}/rpc`;

const card = {
  name: 'js-agent-peer',
  description: 'Does nothing.',
  version: '1.0.0',
  supportedInterfaces: [
    { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
    { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3', tenant: '' },
  ],
  capabilities: { streaming: false, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [
    {
      id: 'nothing',
      name: 'Nothing',
      description: 'Does nothing.',
      tags: ['nothing'],
      examples: [],
      inputModes: [],
      outputModes: [],
      securityRequirements: [],
    },
  ],
  signatures: [],
};

// A probe sends no message, so nothing is ever executed.
const idle = { execute: async () => {}, cancelTask: async () => {} };

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), idle);
const legacyCompat = { enabled: true };

express()
  .use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }))
  .use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }))
  .listen(Number(process.env.PORT), '127.0.0.1');
