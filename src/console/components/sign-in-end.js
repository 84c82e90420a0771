// Tells in time that a sign-in ends which the issuer does not renew.

import { second } from "../lib/clock.js";
import { html, useEffect } from "../lib/html.js";
import { leaveForIssuer } from "../lib/oidc.js";
import { endSession, session } from "../lib/session.js";
import { Notice } from "./notice.js";
import { toast } from "./toast.js";
import { S } from "../strings/sign-in.js";

export function SignInEnd() {
  second.value;
  const { credential, namespace } = session.value ?? {};
  const isLast = credential?.kind === "oidc" && credential.refresh === null;
  const isOver = isLast && credential.end <= Date.now();
  useEffect(() => {
    if (isOver) endSession(S.ended);
  }, [isOver]);
  if (!isLast || Date.now() < credential.nearEnd) return null;
  const again = () =>
    leaveForIssuer(namespace ?? "").catch((/** @type {any} */ error) => toast(error.message, { tone: "alarm" }));
  return html`
    <${Notice} tone="alarm"><span>${S.endsSoon}</span><button type="button" onClick=${again}>${S.again}</button><//>
  `;
}
