// Types that the console's sources use without an import.

import type { components, operations } from "./openapi.js";

declare global {
  type Schemas = components["schemas"];
  type OperationName = keyof operations;
  type Parameters_<O extends OperationName> = operations[O]["parameters"];
  type Body_<O extends OperationName> = operations[O] extends { requestBody: { content: { "application/json": infer B } } } ? B : never;
  // The document lists properties as required that a request may leave out.
  type Loose<T> = T extends (infer U)[] ? Loose<U>[] : T extends object ? { [K in keyof T]?: Loose<T[K]> } : T;
  type Content_<R> = R extends { content: { "application/json": infer T } } ? T : undefined;

  /** What an operation takes. */
  type CallOptions<O extends OperationName> = {
    query?: Parameters_<O>["query"];
    headers?: Record<string, string>;
    signal?: AbortSignal;
  } & (Parameters_<O>["path"] extends Record<string, unknown> ? { path: Parameters_<O>["path"] } : { path?: undefined })
    & ([Body_<O>] extends [never] ? { body?: undefined } : { body: Loose<Body_<O>> });
  type AnyCallOptions = {
    path?: Record<string, unknown>; query?: Record<string, unknown>; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal;
  };
  /** What an operation answers. */
  type Answer<O extends OperationName> = Content_<operations[O]["responses"][keyof operations[O]["responses"] & (200 | 201 | 202 | 204)]>;
}
