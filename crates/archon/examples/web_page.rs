//! A web page that shows a run while it works. The router of the server is mounted in the router of this program.
//! `cargo run -p archon-agents --features server --example web_page`, then open the link that it prints. Without a
//! network: the model is scripted.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{error::Error, net::SocketAddr, sync::Arc};

use archon::{
    Archon, Runs, SystemClock,
    providers::{ScriptedProvider, Step},
    server::{
        AccessToken, AllowedHosts, Role, Scope, ServeOptions, Server, ServerOptions,
        axum::{Router, response::Html, routing::get},
        serve,
    },
    types::{CancellationToken, Request},
};

/// The page: it starts a run, and shows the pieces of the answer as they come.
const PAGE: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>A run</title>
<form><input name="text" value="Hello" autofocus> <button>Send</button></form>
<pre></pre>
<script>
  const answer = document.querySelector("pre");
  document.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    const response = await fetch("/agents/v1/runs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text: event.target.text.value }),
    });
    const started = await response.json();
    if (!response.ok) return (answer.textContent = started.detail);
    answer.textContent = "";
    const events = new EventSource(`/agents/v1/runs/${started.run}/events`);
    events.addEventListener("delta", ({ data }) => {
      const delta = JSON.parse(data);
      if (delta.delta === "text") answer.append(delta.text);
    });
    // The record has the whole answer, also for a page that missed pieces of it.
    events.addEventListener("record", ({ data }) => {
      const record = JSON.parse(data);
      if (record.type !== "model_call_finished") return;
      const texts = record.message.content.filter((block) => block.type === "text");
      answer.textContent = texts.map((block) => block.text).join("");
    });
    events.addEventListener("end", () => events.close());
  };
</script>
"#;

/// Returns the program's router, and the path of a link that signs a browser in.
pub(crate) fn app(address: SocketAddr) -> Result<(Router, String), Box<dyn Error>> {
    let agent = Archon::builder().agent_id("desk").provider(Arc::new(model()), "scripted").build()?;
    let scope = Scope::new(Arc::new(Runs::new(agent)));
    // Nobody knows this token: browsers come by a link.
    let token = AccessToken::random("browser", Role::Operator, scope)?;
    let hosts = AllowedHosts::of_address(address, []);
    let options = ServerOptions::default().with_home("/");
    let server = Server::new(hosts, [token], Arc::new(SystemClock), options);
    let link = format!("/agents{}", server.one_time_link("browser")?);
    let app = Router::new().route("/", get(|| async { Html(PAGE) })).nest("/agents", server.router());
    Ok((app, link))
}

/// A model that repeats what it reads.
fn model() -> ScriptedProvider {
    let reply = |request: &Request| {
        let said = request.messages.iter().last().map(|message| message.text()).unwrap_or_default();
        Step::text(format!("You wrote: {said}"))
    };
    ScriptedProvider::new(std::iter::repeat_with(|| Step::reply(reply)).take(1_000))
}

#[allow(dead_code, reason = "a test uses the router without a network")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let (app, link) = app(listener.local_addr()?)?;
    println!("open http://localhost:8080{link}");
    serve(app, listener, &ServeOptions::default(), &CancellationToken::new()).await?;
    Ok(())
}
