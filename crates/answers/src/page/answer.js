// Shows the question of the token in the address, and posts the answer.
const token = location.hash.slice(1);
// The token does not stay in the history of the browser.
history.replaceState(null, "", location.pathname);

const byId = (id) => document.getElementById(id);
const say = (text) => { byId("state").textContent = text; };

// Other parts of a page may be nested below a path, so addresses are relative to this page.
async function send(path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify({ token, ...body }) });
  const data = await response.json();
  if (!response.ok) throw new Error(data.detail);
  return data;
}

function show(question) {
  byId("summary").textContent = question.summary;
  const by = question.agent ? `${question.agent} asks.` : "";
  const until = question.expires_at ? ` Open until ${new Date(question.expires_at).toLocaleString()}.` : "";
  const tool = question.tool ? ` It would call ${question.tool} with:` : "";
  byId("about").textContent = by + until + tool;
  for (const [name, value] of question.rows) {
    const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
    [dt.textContent, dd.textContent] = [name, value];
    byId("rows").append(dt, dd);
  }
  for (const id of ["approve", "reply"]) byId(id).hidden = !question.options.includes(id);
  if (!question.options.includes("reply")) byId("label").textContent = "A reason, if you say no";
  byId("form").hidden = false;
  say("");
}

async function answer(value) {
  byId("form").hidden = true;
  say("One moment …");
  try {
    await send("answer", { answer: value });
    say("Thank you. The answer was taken, and the run goes on. You can close this page.");
  } catch (error) {
    say(`${error.message}.`);
  }
}

const words = () => byId("words").value.trim();
// A yes has no words: a condition behind it would get lost.
byId("approve").onclick = () => words() === ""
  ? answer({ answer: "approve" })
  : say("A yes is sent without words: remove them, or say no with them as the reason.");
byId("reply").onclick = () => answer({ answer: "reply", text: words() });
byId("cancel").onclick = () => answer({ answer: "cancel", reason: words() });

if (token === "") {
  say("The address has no token: open the link of the notification again.");
} else {
  send("answer/question", {}).then(show, (error) => say(`${error.message}.`));
}
