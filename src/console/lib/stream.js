// Server-sent events over fetch: EventSource cannot send a credential.

import { AwayError, request } from "./api.js";

/** An event, its data read.
 * @typedef {{ event: string, data: any }} ServerEvent */

/** The broker sends something every fifteen seconds. */
const SILENT_MILLISECONDS = 40_000;

/** The stream was open and broke, or nothing came through: the broker has gone, or something between here and it lets
 * no stream pass. */
export class BrokenError extends AwayError {
  /** @param {boolean} isSilent whether nothing came through */
  constructor(isSilent) {
    super();
    this.isSilent = isSilent;
  }
}

/** Follows the changes of the namespace until the stream ends. `onEvents` gets what changed at one time, with the id of
 * all.
 * @param {{ lastId: string, seconds: number | undefined, signal: AbortSignal, onOpen: () => void,
 *   onEvents: (events: ServerEvent[], id: string) => void }} options */
export async function follow({ lastId, seconds, signal, onOpen, onEvents }) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MILLISECONDS);
  let isOpen = false;
  try {
    const response = await request("follow_changes", {
      query: { seconds },
      headers: lastId === "" ? {} : { "Last-Event-ID": lastId },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    isOpen = true;
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const parser = parse(onEvents);
    for (;;) {
      const read = await reader?.read();
      if (read === undefined || read.done) return;
      onOpen();
      parser(read.value);
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MILLISECONDS);
    }
  } catch (error) {
    if (silence.signal.aborted || error instanceof TypeError)
      throw isOpen || silence.signal.aborted ? new BrokenError(silence.signal.aborted) : new AwayError();
    throw error;
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** Makes a reader of pieces of a stream.
 * @param {(events: ServerEvent[], id: string) => void} onEvents */
export function parse(onEvents) {
  let rest = "";
  let [event, data, id] = ["", "", ""];
  /** @type {ServerEvent[]} */
  let events = [];
  /** @param {string} line */
  const take = (line) => {
    if (line === "") {
      if (event === "current") {
        onEvents(events, id);
        events = [];
      } else if (event !== "") events.push({ event, data: JSON.parse(data || "{}") });
      [event, data] = ["", ""];
      return;
    }
    const at = line.indexOf(":");
    const value = line.slice(at + 1).replace(/^ /, "");
    if (line.startsWith("event:")) event = value;
    else if (line.startsWith("data:")) data += value;
    else if (line.startsWith("id:")) id = value;
  };
  return (/** @type {string} */ piece) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  };
}
