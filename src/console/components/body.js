// A body as text, JSON or bytes: what is shown is bounded, what is downloaded is not.

import { bytesOfBase64, bytesOfText, compressionOf, decoded, decompressed, download, hexDump } from "../lib/bytes.js";
import { size } from "../lib/format.js";
import { html, useEffect, useMemo, useState } from "../lib/html.js";
import { laidOut } from "../lib/json.js";
import { linesOf } from "../lib/json-lines.js";
import { parts } from "../lib/visible.js";
import { Choice } from "./field.js";
import { JsonView } from "./json-view.js";
import { Copy } from "./notice.js";
import { Parts, Text } from "./text.js";
import { S } from "../strings/message.js";

/** Bytes that are shown at first, and more each time the reader asks. */
const SHOWN = 64 * 1024;
/** JSON up to this size is laid out. */
const JSON_MAX = 2 * 1024 * 1024;
/** What is unpacked of a body, however much it would become. */
const UNPACKED_MAX = 4 * 1024 * 1024;

/** Shows a body.
 * @param {{ body: Schemas["BodyContent"] | null | undefined, contentType?: string | null, name: string }} properties */
export function Body({ body, contentType, name }) {
  const bytes = useMemo(
    () =>
      body == null ? new Uint8Array() : body.text != null ? bytesOfText(body.text) : bytesOfBase64(body.base64 ?? ""),
    [body],
  );
  const packed = useMemo(() => compressionOf(bytes), [bytes]);
  const [as, setAs] = useState("");
  if (body == null || bytes.length === 0) return html`<p class="muted">${S.noBody}</p>`;
  const looksJson =
    bytes.length <= JSON_MAX && (/json/i.test(contentType ?? "") || /^\s*[{[]/.test(body.text?.slice(0, 100) ?? ""));
  // The browser unpacks more than the broker shows; what it cannot read (zip, Brotli), the broker has read.
  const isPacked = packed !== null || body.decoded != null;
  const current =
    as || (isPacked && body.text == null ? "unpacked" : body.text == null ? "hex" : looksJson ? "json" : "text");
  const options = [
    { value: "text", label: S.text },
    ...(bytes.length <= JSON_MAX ? [{ value: "json", label: S.json }] : []),
    { value: "hex", label: S.hex },
    ...(isPacked ? [{ value: "unpacked", label: S.unpacked }] : []),
  ];
  return html`
    <div class="tools">
      <${Choice} label=${S.as} value=${current} onChange=${setAs} options=${options} />
      <span class="muted number">${size(body.size_bytes)}</span>
      <span class="actions">
        <button type="button" class="quiet" onClick=${() => download(name, bytes)}>${S.download}</button>
        ${body.text != null && html`<${Copy} text=${body.text} label=${S.copyBody} />`}
      </span>
    </div>
    ${current === "unpacked" && packed !== null
      ? html`<${Unpacked} bytes=${bytes} format=${packed} />`
      : current === "unpacked" && body.decoded != null
        ? html`<${Decoded} content=${body.decoded} />`
        : html`<${Shown} key=${current} bytes=${bytes} as=${current} />`}
  `;
}

/** @param {{ bytes: Uint8Array, as: string }} properties */
function Shown({ bytes, as }) {
  const [most, setMost] = useState(SHOWN);
  const lines = useMemo(() => (as === "json" ? linesOf(new TextDecoder().decode(bytes)) : null), [bytes, as]);
  const shown = useMemo(() => {
    if (lines !== null) return [];
    if (as === "hex") return [{ text: hexDump(bytes.subarray(0, most / 4)), isEscape: false }];
    if (as === "json") {
      const text = laidOut(new TextDecoder().decode(bytes));
      return text === null ? null : visibleParts(text.slice(0, 2 * most));
    }
    return decoded(bytes.subarray(0, most)).flatMap((part) => (part.isEscape ? [part] : visibleParts(part.text)));
  }, [bytes, as, most]);
  if (shown === null) return html`<p class="muted">${S.notJson}</p><${Shown} bytes=${bytes} as="text" />`;
  if (lines !== null) return html`<${JsonView} lines=${lines} />`;
  const seen = as === "hex" ? most / 4 : most;
  return html`
    <pre class="body" tabindex="0" aria-label=${S.body}><${Parts} parts=${shown} /></pre>
    ${seen < bytes.length && html`
      <p class="muted">
        ${S.truncated(size(seen), size(bytes.length))}
        <button type="button" class="quiet" onClick=${() => setMost(most * 4)}>${S.more}</button>
      </p>
    `}
  `;
}

/** Tabs and line feeds stay; the rest of what hides is shown.
 * @param {string} text */
const visibleParts = (text) => parts(text);

/** @param {{ bytes: Uint8Array, format: CompressionFormat }} properties */
function Unpacked({ bytes, format }) {
  const [result, setResult] = useState(
    /** @type {{ bytes: Uint8Array, isTruncated: boolean } | null | undefined} */ (undefined),
  );
  useEffect(() => {
    decompressed(bytes, format, UNPACKED_MAX).then(setResult, () => setResult(null));
  }, [bytes, format]);
  if (result === undefined) return null;
  if (result === null) return html`<p class="muted">${S.notUnpacked}</p><${Shown} bytes=${bytes} as="hex" />`;
  return html`<${Content} format=${format} ...${result} />`;
}

/** @param {{ content: Schemas["DecodedContent"] }} properties */
function Decoded({ content: { format, text, base64, truncated } }) {
  const bytes = useMemo(() => (text != null ? bytesOfText(text) : bytesOfBase64(base64 ?? "")), [text, base64]);
  return html`<${Content} format=${format} bytes=${bytes} isTruncated=${truncated ?? false} />`;
}

/** @param {{ format: string, bytes: Uint8Array, isTruncated: boolean }} properties */
function Content({ format, bytes, isTruncated }) {
  const isJson = /^\s*[{[]/.test(new TextDecoder().decode(bytes.subarray(0, 64)));
  return html`
    <p class="muted"><${Text} value=${format} />, ${size(bytes.length)}${isTruncated && "…"}</p>
    <${Shown} bytes=${bytes} as=${isJson && !isTruncated ? "json" : "text"} />
  `;
}
