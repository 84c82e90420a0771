// Signing in at the issuer that the broker trusts.

import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import { heading, inBrowser, isAccessible, live, until } from "../harness.js";
import { tabTo } from "../journey.js";
import { REFUSAL, startIssuer, startTrusting } from "../issuer.js";

let issuer;
let broker;

const button = (page) => page.getByRole("button", { name: "Sign in at 127.0.0.1" });

/** Signs in as one of the issuer's people. */
async function signIn(page, who, address = "/") {
  await page.goto(broker.url + address);
  await button(page).click();
  await page.getByRole("link", { name: who }).click();
}

/** Fails if the issuer has seen a client do something wrong. */
const isContent = () => assert.deepEqual(issuer.wrong, []);

inBrowser("signing in at an issuer", (test) => {
  before(async () => {
    issuer = await startIssuer();
    broker = await startTrusting(issuer);
    issuer.origin = broker.url;
    await until(
      async () => (await offer()).authorization_endpoint !== null,
      "the broker has read the issuer's configuration",
    );
  });
  after(async () => {
    await broker?.stop();
    issuer?.stop();
  });
  beforeEach(() => issuer.reset());
  const offer = async () => (await (await fetch(`${broker.url}/$console/sign-in.json`)).json()).oidc;

  test("an owner comes back to the page, is known by name, and leaves nothing in the address; the tab alone keeps it", async (page, context) => {
    const authorizations = new Set();
    page.on(
      "request",
      (request) =>
        request.url().includes("/api/v1") && authorizations.add(request.headers().authorization?.slice(0, 10)),
    );
    const answer = await page.goto(`${broker.url}/#/entities`);
    assert.match(answer.headers()["content-security-policy"], new RegExp(`connect-src 'self' ${issuer.url}; `));
    await button(page).waitFor();
    await isAccessible(page);
    await button(page).click();
    await page.getByRole("link", { name: "owner" }).click();
    await live(page);
    await heading(page, "Entities");
    assert.equal(page.url(), `${broker.url}/?namespace=trusting#/entities`);
    assert(
      !(await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name))).some((name) =>
        name.includes("code="),
      ),
    );
    await page.getByText("owner@example").waitFor();
    assert.deepEqual([...authorizations], ["Bearer eyJ"]);
    await page.goto(`${broker.url}/#/entity/guarded`);
    await page.getByRole("button", { name: "Delete messages" }).waitFor();
    await page.reload();
    await page.getByText("owner@example").waitFor();
    await page.getByRole("button", { name: "Delete messages" }).waitFor();
    assert.deepEqual(issuer.grants, ["authorization_code"]);
    const other = await context.newPage();
    await other.goto(broker.url);
    await button(other).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await button(page).waitFor();
    assert.deepEqual(await page.evaluate(() => Object.keys(sessionStorage)), []);
    isContent();
  });

  test(
    "by keyboard alone, and who may listen is not offered what it may not",
    async (page) => {
      await page.goto(broker.url);
      await button(page).waitFor();
      await tabTo(page, /^Sign in at/);
      await page.keyboard.press("Enter");
      await page.getByRole("link", { name: "listener" }).waitFor();
      await tabTo(page, /^listener$/);
      await page.keyboard.press("Enter");
      await live(page);
      await page.goto(`${broker.url}/#/entity/guarded`);
      await page.getByRole("link", { name: "Properties" }).waitFor();
      for (const name of ["Delete messages", "Delete entity"])
        assert.equal(await page.getByRole("button", { name }).count(), 0);
      isContent();
    },
    { allow: [/403 \(Forbidden\)/, /401 \(Unauthorized\)/] },
  );

  test(
    "who has no role is refused in the broker's words",
    async (page) => {
      await signIn(page, "nothing");
      await page
        .getByRole("alert")
        .getByText(/Data Owner/)
        .waitFor();
      await button(page).waitFor();
    },
    { allow: [/401 \(Unauthorized\)/] },
  );

  test("an answer that was not asked for is refused, and its words are not shown", async (page) => {
    issuer.state = "another";
    await signIn(page, "owner");
    await page.getByRole("alert").getByText("not started in this tab").waitFor();
    assert.equal(page.url(), `${broker.url}/`);
    await page.goto(`${broker.url}/?error=access_denied&error_description=Call+us&state=another`);
    await page.getByRole("alert").getByText("not started in this tab").waitFor();
    assert.equal(await page.getByText("Call us").count(), 0);
    issuer.reset();
    issuer.nonce = "another";
    await signIn(page, "owner");
    await page.getByRole("alert").getByText("not for this sign-in").waitFor();
    // Such an answer does not end a session.
    issuer.reset();
    await signIn(page, "owner");
    await live(page);
    await page.goto(`${broker.url}/?code=x&state=another`);
    await live(page);
    await page.getByRole("alert").getByText("not started in this tab").waitFor();
    assert.deepEqual(issuer.grants, ["authorization_code"]);
  });

  test("an ID token of another client, issuer or time, or without a signature, is refused", async (page) => {
    const alert = page.getByRole("alert");
    for (const [wrong, why] of [
      [{ claims: { azp: "another" } }, "azp"],
      [{ claims: { aud: ["another"] } }, "aud"],
      [{ claims: { aud: ["jitney-console", "another"] } }, "aud"],
      [{ claims: { iss: "https://login.example" } }, "iss"],
      [{ claims: { exp: Math.floor(Date.now() / 1000) - 3_600 } }, "exp"],
      [{ alg: "none" }, "alg"],
      [{ alg: "HS256" }, "alg"],
    ]) {
      issuer.reset();
      Object.assign(issuer, wrong);
      await signIn(page, "owner");
      await alert.getByText(new RegExp(`not for this sign-in .*\\b${why}\\b`)).waitFor();
      await button(page).waitFor();
    }
    issuer.reset();
    issuer.alg = "ES256";
    await signIn(page, "owner");
    await live(page);
  });

  test("who does not sign in at the issuer does not load its library; a wrong clock does not matter", async (page) => {
    const files = [];
    page.on("request", (request) => files.push(new URL(request.url()).pathname));
    await page.clock.install({ time: Date.now() - 2 * 3_600_000 });
    await page.goto(broker.url);
    await button(page).waitFor();
    const isLoaded = () => files.some((path) => path.endsWith("/vendor/oauth4webapi.js"));
    assert(!isLoaded());
    await button(page).click();
    await page.getByRole("link", { name: "owner" }).click();
    await live(page);
    assert(isLoaded());
    isContent();
  });

  test("an answer is good once", async (page) => {
    const answers = [];
    page.on("request", (request) => request.url().includes("?code=") && answers.push(request.url()));
    await signIn(page, "owner");
    await live(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await button(page).waitFor();
    await page.goto(answers[0]);
    await page.getByRole("alert").getByText("not started in this tab").waitFor();
    assert.deepEqual(issuer.grants, ["authorization_code"]);
  });

  test(
    "the issuer's errors are shown in its words, as text",
    async (page) => {
      await signIn(page, "refuse");
      const alert = page.getByRole("alert");
      await alert.getByText("access_denied").waitFor();
      const shown = await alert.textContent();
      assert(shown.includes(REFUSAL.replace("\u202e", "\\u{202e}")), shown);
      issuer.tokenError = [400, { error: "invalid_grant", error_description: "This code is too old." }];
      await signIn(page, "owner");
      await alert.getByText("This code is too old. (invalid_grant)").waitFor();
      issuer.tokenError = [503, "busy"];
      await signIn(page, "owner");
      await alert.getByText("answered 503 without a token").waitFor();
    },
    { allow: [/400 \(Bad Request\)/, /503 \(Service Unavailable\)/] },
  );

  test(
    "a token is renewed before its end, and the new one is used and kept",
    async (page) => {
      await page.clock.install();
      const used = new Set();
      page.on("request", (request) => request.url().includes("/api/v1") && used.add(request.headers().authorization));
      await signIn(page, "owner");
      await live(page);
      assert.equal(used.size, 1);
      await page.clock.fastForward("57:00");
      await until(() => used.size === 2, "the new token is used");
      assert.deepEqual(issuer.grants, ["authorization_code", "refresh_token"]);
      await page.reload();
      await live(page);
      assert.equal(used.size, 2);
      isContent();
      // Until its end a token is used, if the issuer does not renew it; then the sign-in is over, in the issuer's
      // words.
      issuer.tokenError = [400, { error: "invalid_grant", error_description: "You were signed out." }];
      await page.clock.fastForward("57:00");
      await page.getByRole("alert").getByText("ends in a few minutes").waitFor();
      await live(page);
      await page.clock.fastForward("05:00");
      await page.getByRole("alert").getByText("has ended").waitFor();
      await button(page).waitFor();
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("where the issuer renews nothing, one is asked in time to sign in again, and comes back", async (page) => {
    issuer.refreshes = false;
    await page.clock.install();
    await signIn(page, "owner", "/#/jobs");
    await live(page);
    assert.equal(await page.getByRole("button", { name: "Sign in again" }).count(), 0);
    await page.clock.fastForward("56:00");
    await page.getByRole("button", { name: "Sign in again" }).click();
    await page.getByRole("link", { name: "owner" }).click();
    await live(page);
    await heading(page, "Jobs");
    assert.equal(await page.getByRole("button", { name: "Sign in again" }).count(), 0);
    assert.deepEqual(issuer.grants, ["authorization_code", "authorization_code"]);
    isContent();
  });

  test("without the browser's cryptography a library makes the challenge", async (page) => {
    await page.addInitScript(() => Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined }));
    await signIn(page, "owner");
    await live(page);
    isContent();
  });
});
