// Texts of the sign-in.

export const S = {
  title: "Sign in",
  lead: "This broker verifies keys. A key stays in this tab: tokens are signed here, and the key is not sent.",
  connectionString: "Connection string",
  connectionStringHint: "Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…, or a SharedAccessSignature",
  connectionStringWrong: "It has neither SharedAccessKeyName and SharedAccessKey nor SharedAccessSignature.",
  keyWrong: "The key or its signature is wrong. Check SharedAccessKeyName and SharedAccessKey.",
  operator: "Operator's key",
  operatorHint: "It allows everything, in every namespace. It is sent with each request.",
  operatorEmpty: "Enter the key.",
  operatorWrong: "This is not the operator's key of this broker.",
  operatorCommand: "cat jitney-data/operator.key",
  operatorCommandLabel: "On the broker's machine:",
  by: "Sign in with",
  byConnectionString: "Connection string",
  byOperator: "Operator's key",
  byIssuer: "Identity provider",
  /** @param {string} host */
  issuerLead: (host) =>
    `You sign in at ${host}, and come back to this page. It gets a token of yours, which stays in this tab.`,
  /** @param {string} host */
  submitIssuer: (host) => `Sign in at ${host}`,
  /** @param {string} words */
  issuerSays: (words) => `The identity provider says: ${words}`,
  /** @param {string} reason */
  issuerUnavailable: (reason) => `The broker cannot tell where to sign in: ${reason}`,
  /** @param {string} endpoint @param {string} origin */
  issuerAway: (endpoint, origin) =>
    `${endpoint} does not answer, or does not allow pages of ${origin} to ask for tokens (CORS).`,
  /** @param {string} endpoint @param {number} status */
  noToken: (endpoint, status) => `${endpoint} answered ${status} without a token.`,
  noIssuer: "this console has no identity provider.",
  otherIssuer: "The answer is not of the identity provider that this broker trusts.",
  stateWrong: "The sign-in was not started in this tab, or was answered before. Sign in again.",
  /** @param {string} why */
  idTokenWrong: (why) => `The identity provider's answer is not for this sign-in (${why}). Sign in again.`,
  endsSoon: "Your sign-in ends in a few minutes. Sign in again to stay; you come back to this page.",
  again: "Sign in again",
  ended: "Your sign-in has ended. Sign in again.",
  namespace: "Namespace",
  namespaceHint: "Only if it is not the one of this page's address.",
  submit: "Sign in",
  busy: "Signing in",
  away: "Cannot reach the broker. This page tries again by itself.",
};
