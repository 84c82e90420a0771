// Bodies as bytes: text, hex, compressed.

/** @param {string} text */
export const bytesOfText = (text) => new TextEncoder().encode(text);

/** @param {string} base64 */
export function bytesOfBase64(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** @param {Uint8Array} bytes */
export function base64OfBytes(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

/** Returns the length of the UTF-8 sequence at a place, 0 if there is none.
 * @param {Uint8Array} bytes
 * @param {number} at */
function sequenceAt(bytes, at) {
  const first = bytes[at];
  const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (let next = 1; next < length; next += 1) if ((bytes[at + next] & 0xc0) !== 0x80) return 0;
  if (length < 3) return length;
  const second = bytes[at + 1];
  const isOutside =
    (first === 0xe0 && second < 0xa0) ||
    (first === 0xed && 0x9f < second) ||
    (first === 0xf0 && second < 0x90) ||
    (first === 0xf4 && 0x8f < second);
  return isOutside ? 0 : length;
}

/** Splits bytes into texts and escapes of what is not UTF-8.
 * @param {Uint8Array} bytes
 * @returns {{ text: string, isEscape: boolean }[]} */
export function decoded(bytes) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const found = [];
  let from = 0;
  let at = 0;
  const take = () => {
    if (from < at) found.push({ text: decoder.decode(bytes.subarray(from, at)), isEscape: false });
  };
  while (at < bytes.length) {
    const length = sequenceAt(bytes, at);
    if (length !== 0) {
      at += length;
      continue;
    }
    take();
    const escape = `\\x${bytes[at].toString(16).padStart(2, "0")}`;
    const last = found.at(-1);
    if (last?.isEscape) last.text += escape;
    else found.push({ text: escape, isEscape: true });
    at += 1;
    from = at;
  }
  take();
  return found;
}

/** Shows bytes sixteen a line: place, hex, and what is printable.
 * @param {Uint8Array} bytes */
export function hexDump(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.subarray(at, at + 16);
    const hex = Array.from(row, (byte) => byte.toString(16).padStart(2, "0"));
    const shown = Array.from(row, (byte) => (0x20 <= byte && byte < 0x7f ? String.fromCharCode(byte) : "."));
    const left = hex.slice(0, 8).join(" ").padEnd(23);
    lines.push(`${at.toString(16).padStart(8, "0")}  ${left}  ${hex.slice(8).join(" ").padEnd(23)}  ${shown.join("")}`);
  }
  return lines.join("\n");
}

/** Returns how bytes are compressed, if they begin so.
 * @param {Uint8Array} bytes
 * @returns {CompressionFormat | null} */
export function compressionOf(bytes) {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return "gzip";
  // RFC 1950: the method is 8, and the first two bytes are a multiple of 31.
  if ((bytes[0] & 0x0f) === 8 && bytes[0] >> 4 <= 7 && bytes.length > 2 && ((bytes[0] << 8) | bytes[1]) % 31 === 0)
    return "deflate";
  return null;
}

/** Decompresses up to so many bytes: what a few bytes become has no bound of its own.
 * @param {Uint8Array} bytes
 * @param {CompressionFormat} format
 * @param {number} most
 * @returns {Promise<{ bytes: Uint8Array, isTruncated: boolean }>} */
export async function decompressed(bytes, format, most) {
  const stream = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(new DecompressionStream(format));
  const reader = stream.getReader();
  const out = new Uint8Array(most);
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: out.subarray(0, length), isTruncated: false };
    const room = value.subarray(0, most - length);
    out.set(room, length);
    length += room.length;
    if (room.length < value.length) {
      await reader.cancel();
      return { bytes: out, isTruncated: true };
    }
  }
}

/** Hands bytes to the reader as a file.
 * @param {string} name
 * @param {Uint8Array | string} content */
export function download(name, content) {
  // A type that no browser shows: a body must not become a page of this origin.
  const blob = new Blob([/** @type {BlobPart} */ (content)], { type: "application/octet-stream" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
