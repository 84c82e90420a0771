// What /etc/hosts would do: the service's name leads to the broker. Some of the packages put their hosts together themselves.

const dns = require("node:dns");

const { lookup } = dns;
dns.lookup = (name, ...rest) => {
  const ours = name.endsWith(".servicebus.windows.net");
  return lookup(ours ? process.env.JITNEY_SHIPPED_HOST : name, ...rest);
};
