// Preloaded into peers (node --require ./loopback.cjs …): some of them listen on every interface of the machine and
// have no option for it. With this they listen on loopback only, whatever they ask for.
//
// The socket is bound here rather than in net.Server.listen, because listen with a host is asynchronous where listen
// without one is not, and the conformance suite counts on an address right after it.
'use strict';

const { TCP } = process.binding('tcp_wrap');

const bind = TCP.prototype.bind;

TCP.prototype.bind = function (_address, port, flags) {
  return bind.call(this, '127.0.0.1', port, flags);
};

TCP.prototype.bind6 = function (_address, port) {
  return bind.call(this, '127.0.0.1', port);
};
