// The page deferred.

import { html } from "../lib/html.js";
import { Empty } from "../components/notice.js";
import { S as C } from "../strings/common.js";

export default function Page() {
  return html`<div class="page-head"><h1 tabindex="-1">${C.pages.deferred}</h1></div><${Empty} title="" />`;
}
