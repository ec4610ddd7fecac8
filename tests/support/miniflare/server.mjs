// Cloudflare's own runtime with one namespace, behind the addresses of its REST API. Lists and reads are answered by
// miniflare's routes; it has none for bulk writes, which are put and deleted one by one through the runtime's binding.
import { createServer } from "node:http";
import { createRequire } from "node:module";

const { Miniflare } = createRequire(`${process.argv[2]}/`)("miniflare");
const BASE = "/client/v4/accounts/acc/storage/kv/namespaces/space";
// The API worker of the seed, as short as it can be: the id index, and one article by its key.
const WORKER = `export default { async fetch(request, env) {
  const path = decodeURIComponent(new URL(request.url).pathname);
  if (path === "/articles") {
    const ids = await env.KV.get("BTC_ID_INDEX", "json") ?? [];
    return Response.json(await Promise.all(ids.map((id) => env.KV.get("article:" + id, "json"))));
  }
  const value = await env.KV.get(path.slice(1));
  return value === null ? new Response("", { status: 404 }) : new Response(value);
} }`;

const runtime = new Miniflare({
  modules: true, script: WORKER, host: "127.0.0.1", port: 0, kvNamespaces: { KV: "space" }, unsafeLocalExplorer: true,
});
const worker = String(await runtime.ready);
const namespace = await runtime.getKVNamespace("KV");

async function bulk(values, change) {
  const refused = [];
  for (const value of values) {
    try { await change(value); } catch { refused.push(value.key ?? value); }
  }
  const result = { successful_key_count: values.length - refused.length, unsuccessful_keys: refused };
  return Response.json({ success: true, errors: [], messages: [], result });
}

async function answer(request, body) {
  const url = new URL(request.url, "http://localhost");
  if (!url.pathname.startsWith(BASE)) return new Response("", { status: 404 });
  const path = url.pathname.slice(BASE.length);
  if (request.method === "PUT" && path === "/bulk") {
    return bulk(JSON.parse(body), ({ key, value }) => namespace.put(key, value));
  }
  if (request.method === "POST" && path === "/bulk/delete") {
    return bulk(JSON.parse(body), (key) => namespace.delete(key));
  }
  const own = `${worker}cdn-cgi/explorer/api/storage/kv/namespaces/space${path}${url.search}`;
  const headers = body.length ? { "content-type": "application/json" } : {};
  return fetch(own, { method: request.method, headers, body: body.length ? body : undefined });
}

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const found = await answer(request, Buffer.concat(parts));
  response.writeHead(found.status, { "content-type": "application/json" });
  response.end(Buffer.from(await found.arrayBuffer()));
});
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ api: `http://127.0.0.1:${server.address().port}/client/v4`, worker }));
});
// The end of its input is the end of the test.
process.stdin.on("end", async () => { await runtime.dispose(); process.exit(0); }).resume();
