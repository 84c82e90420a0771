// Message sessions: state, holder, messages in order, and an end to what is left of one.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, securedUrl, until } from "../harness.js";
import { connect, receive } from "../client.js";
import { HOSTILE, entity, send } from "../seed.js";
import { LISTENER, countClicks, signIn, tabTo } from "../journey.js";

const base64 = (text) => Buffer.from(text).toString("base64");
const at = (path, id) => `/entities/${encodeURIComponent(path)}/sessions/${encodeURIComponent(id)}`;
const stateOf = async (path, id) => {
  const { state_base64: state } = await api("GET", at(path, id));
  return state === undefined ? null : Buffer.from(state, "base64").toString("latin1");
};

inBrowser("sessions", (test) => {
  let connection;
  after(() => connection?.close());

  before(async () => {
    for (const path of ["claims", "returns"]) await entity(api, path, "queue", { requires_session: true });
    await send(
      api,
      "claims",
      ...Array.from({ length: 12 }, (_, number) => ({ body: `claim ${number}`, session_id: `claimant-${number % 4}` })),
    );
    await send(api, "returns", { body: "return", session_id: "held" }, { body: "return", session_id: "hand" });
    await api("PUT", at("claims", "claimant-3"), { state_base64: base64('{"step":3,"note":"\u202e<b>x</b>"}') });
    connection = await connect("returns-worker");
    await receive(connection, "returns", { session: "held" });
  });

  test("in four clicks: what is left of a session is dead-lettered", async (page) => {
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Sessions" }).click();
    await heading(page, "Sessions");
    await page.getByRole("link", { name: "claimant-1", exact: true }).click();
    await heading(page, "claimant-1");
    const messages = page.getByRole("table", { name: "Messages, in order" });
    await messages.getByText("claim 9").waitFor();
    assert.deepEqual(await messages.locator("tbody code").allTextContents(), ["claim 1", "claim 5", "claim 9"]);
    await page.getByRole("button", { name: "Dead-letter the rest" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Dead-letter 3 messages of session claimant-1 of claims" }).waitFor();
    await isAccessible(page);
    await dialog.getByRole("button", { name: "Dead-letter 3 messages", exact: true }).click();
    assert.equal(clicks(), 4);
    await page
      .getByRole("status")
      .getByText(/^3 messages of session claimant-1 of claims were dead-lettered in /)
      .waitFor();
    await page.getByText("This session has no messages, no state and no holder now.").waitFor();
    const dead = await api("GET", `/entities/${encodeURIComponent("claims/$DeadLetterQueue")}/messages`);
    assert.deepEqual(
      dead.messages.map(({ session_id: id }) => id),
      ["claimant-1", "claimant-1", "claimant-1"],
    );
    assert.equal((await api("GET", at("claims", "claimant-2"))).messages, 3, "the others stay");
    await page.getByRole("link", { name: "those of this session" }).click();
    await page.getByRole("table", { name: "Dead letters" }).getByText("claim 9").waitFor();
  });

  test("by keyboard: an entity, a session, its state is set", async (page) => {
    await open(page, "#/sessions");
    await page.getByRole("link", { name: "claims", exact: true }).waitFor();
    await tabTo(page, /^claims$/);
    await page.keyboard.press("Enter");
    await heading(page, "claims");
    await page.getByRole("link", { name: "claimant-2" }).waitFor();
    await tabTo(page, /^Session id$/);
    await page.keyboard.type("claimant-2");
    await page.keyboard.press("Enter");
    await heading(page, "claimant-2");
    await tabTo(page, /^Set a state$/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("textbox").and(page.locator(":focus")).waitFor();
    await page.keyboard.type("step 4");
    await tabTo(page, /^Set the state$/);
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText("The state was set.").waitFor();
    await page.locator("pre.body").getByText("step 4").waitFor();
    assert.equal(await stateOf("claims", "claimant-2"), "step 4");
  });

  test("a state is text, JSON and hex, is changed, and is cleared", async (page) => {
    await open(page, "#/sessions/claims/claimant-3");
    const state = page.getByRole("region", { name: "State" });
    await state.locator("pre").getByText('"step": 3').waitFor();
    await state.locator(".escape").getByText("\\u{202e}").waitFor();
    await state.getByText("Hex", { exact: true }).click();
    await state.locator("pre").getByText("7b 22 73 74 65 70").waitFor();
    await state.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    const field = dialog.getByRole("textbox", { name: "State" });
    await field.fill('{"step": ');
    await dialog.getByRole("alert").getByText("Not valid JSON.").waitFor();
    assert(await dialog.getByRole("button", { name: "Set the state" }).isDisabled());
    await isAccessible(page);
    await field.fill('{"step": 4}');
    await dialog.getByText("Hex", { exact: true }).click();
    assert.equal(
      await field.inputValue(),
      "7b 0a 20 20 22 73 74 65 70 22 3a 20 34 0a 7d".replace(/0a 20 20 |0a /g, ""),
    );
    await field.fill("ff fe 0");
    await dialog.getByRole("alert").getByText("pairs of hex digits").waitFor();
    await field.fill("ff fe 00");
    await page.reload();
    await state.getByRole("button", { name: "Edit" }).click();
    assert.equal(await field.inputValue(), "ff fe 00", "a reload loses nothing");
    await dialog.getByRole("button", { name: "Set the state" }).click();
    await state.locator("pre").getByText("ff fe 00").waitFor();
    assert.equal(await stateOf("claims", "claimant-3"), "\u00ff\u00fe\u0000");
    await state.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Clear" }).click();
    await state.getByText("It has no state.").waitFor();
    assert.equal(await stateOf("claims", "claimant-3"), null);
  });

  test(
    "a state that is too large is refused in the broker's words",
    async (page) => {
      await entity(api, "small", "queue", { requires_session: true });
      await send(api, "small", { body: "a", session_id: "a" });
      await open(page, "#/sessions/small/a");
      await page.getByRole("button", { name: "Set a state" }).click();
      await page.route("**/sessions/a", (route) =>
        route.request().method() === "PUT"
          ? route.fulfill({
              status: 400,
              contentType: "application/problem+json",
              body: JSON.stringify({
                status: 400,
                title: "Bad Request",
                detail: "The state has 9 bytes too many.",
                reason: "argument",
              }),
            })
          : route.continue(),
      );
      await page.getByRole("dialog").getByRole("textbox").fill("x");
      await page.getByRole("button", { name: "Set the state" }).click();
      await page.getByRole("dialog").getByRole("alert").getByText("The state has 9 bytes too many.").waitFor();
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("who holds a session is shown, and whether one is free", async (page) => {
    await open(page, "#/sessions/returns");
    const row = page.getByRole("row").filter({ hasText: "returns-worker" });
    await row.getByRole("link", { name: "held" }).waitFor();
    await page.getByText("Free", { exact: true }).click();
    await row.waitFor({ state: "detached" });
    await page.getByRole("link", { name: "hand" }).waitFor();
    await page.reload();
    await page.getByRole("link", { name: "hand" }).waitFor();
    await open(page, "#/sessions?entity=returns&id=held");
    await heading(page, "held");
    assert.equal(new URL(page.url()).hash, "#/sessions/returns/held");
    await page.getByRole("region", { name: "Situation" }).getByRole("link", { name: "returns-worker" }).click();
    await heading(page, /^Connection \d+$/);
    await page.goBack();
    await heading(page, "held");
  });

  test("ids that want to be more are text", async (page) => {
    await entity(api, "hostile-sessions", "queue", { requires_session: true });
    await send(api, "hostile-sessions", ...HOSTILE.map((text) => ({ body: text, session_id: text })));
    await open(page, "#/sessions/hostile-sessions");
    for (const text of HOSTILE) {
      const shown = text.replace(/[\u0000\u001b\u202e]/g, "");
      await until(
        async () =>
          (await page.locator("tbody a").allTextContents()).some(
            (each) => each.replace(/\\x00|\\x1b|\\u\{202e\}/g, "") === shown,
          ),
        text,
      );
    }
    await page.getByRole("link", { name: "<img src=x onerror=alert(1)>" }).click();
    await heading(page, "<img src=x onerror=alert(1)>");
    await page.getByRole("table", { name: "Messages, in order" }).getByText("<img src=x onerror=alert(1)>").waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
  });

  test(
    "who may only listen sees a session, and is not offered to change it",
    async (page) => {
      await signIn(page, LISTENER);
      await page.goto(`${securedUrl}/#/sessions/guarded/a`);
      await heading(page, "a");
      await page.getByRole("region", { name: "Situation" }).waitFor();
      assert.equal(await page.getByRole("button", { name: /Dead-letter|Set|Edit|Clear|job/ }).count(), 0);
    },
    { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] },
  );

  test("axe finds nothing, and at 360 pixels nothing is wider than the page", async (page) => {
    for (const address of ["#/sessions", "#/sessions/returns", "#/sessions/returns/held", "#/sessions/returns/none"]) {
      await page.setViewportSize({ width: 360, height: 740 });
      await open(page, address);
      await page.locator(".loading").first().waitFor({ state: "detached" });
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), address);
      await page.setViewportSize({ width: 1280, height: 800 });
      await isAccessible(page);
    }
    await live(page);
  });
});
