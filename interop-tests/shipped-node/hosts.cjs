// What /etc/hosts would do: the service's name leads to the broker. Some of the packages put their hosts together themselves.

const dns = require("node:dns");

const { lookup } = dns;
dns.lookup = (name, options, done) => lookup(name.endsWith(".servicebus.windows.net") ? process.env.JITNEY_SHIPPED_HOST : name, options, done);
