// Preloaded into peers (node --require ./loopback.cjs …): some of them listen on every interface of the machine and
// have no option for it. With this they listen on loopback only, whatever they ask for.
'use strict';

const net = require('node:net');

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (...args) {
  const [first, second, ...rest] = args;
  if (first !== null && typeof first === 'object') {
    return listen.call(this, 'port' in first ? { ...first, host: '127.0.0.1' } : first, second, ...rest);
  }
  const others = typeof second === 'string' ? rest : [second, ...rest]; // what follows port and host
  return listen.call(this, first, '127.0.0.1', ...others);
};
