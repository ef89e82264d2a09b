// Reads commands from standard input, one JSON value per line, and writes answers to standard
// output.
import { createInterface } from "node:readline";
import { run } from "./driver.js";

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await run(JSON.parse(line), (url) => new URL(url));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit();
