// Texts of the sign-in.

export const S = {
  title: "Sign in",
  lead: "This broker verifies keys. A key stays in this tab: tokens are signed here, and the key is not sent.",
  connectionString: "Connection string",
  connectionStringHint: "Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…, or a SharedAccessSignature",
  connectionStringWrong: "It has neither SharedAccessKeyName and SharedAccessKey nor SharedAccessSignature.",
  operator: "Operator's key",
  operatorHint: "It allows everything, in every namespace. It is sent with each request.",
  operatorEmpty: "Enter the key.",
  operatorCommand: "cat jitney-data/operator.key",
  operatorCommandLabel: "On the broker's machine:",
  by: "Sign in by",
  byConnectionString: "Connection string",
  byOperator: "Operator's key",
  namespace: "Namespace",
  namespaceHint: "Only if it is not the one of this page's address.",
  submit: "Sign in",
  busy: "Signing in",
  away: "The broker does not answer. This page tries again by itself.",
};
