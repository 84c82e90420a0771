// Preact, htm and signals under one name: every component imports this file.

import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

/** Makes elements of a template. Texts in it are always text nodes, never markup.
 * @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);

export { Component, Fragment, createContext, h, render } from "../vendor/preact.js";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export {
  batch,
  computed,
  effect,
  signal,
  untracked,
  useComputed,
  useSignal,
  useSignalEffect,
} from "../vendor/signals.js";

/** @template T
 * @typedef {import("../vendor/signals.js").Signal<T>} Signal */
