// The form that makes and changes entities.

import { html } from "../lib/html.js";
import { Empty } from "../components/notice.js";
import { S } from "../strings/new-entity.js";

export default function Page() {
  return html`<div class="page-head"><h1 tabindex="-1">${S.title}</h1></div><${Empty} title="" />`;
}
