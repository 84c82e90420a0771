// Tests with a namespace of their own each.
import { randomUUID } from "node:crypto";
import { test as base, inject } from "vitest";

export interface Namespace {
  /** Its host is NAME.localhost. */
  connectionString: string;
  /** The broker's address, for `customEndpointAddress`: not every machine resolves names below localhost. */
  endpoint: string;
}

async function request(method: string, url: string, body?: string) {
  const answer = await fetch(url, { method, body });
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
}

export const test = base.extend<{ namespace: Namespace }>({
  namespace: async ({}, use) => {
    const { connectionString, config } = inject("jitney");
    const place = /localhost:\d+/.exec(connectionString)![0];
    const name = `test-${randomUUID()}`;
    const url = `http://${place}/api/v1/namespaces/${name}`;
    await request("PUT", url, config);
    await use({ connectionString: connectionString.replace(place, `${name}.${place}`), endpoint: `sb://${place}` });
    await request("DELETE", url);
  },
});
