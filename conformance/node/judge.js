// Judges files: glTF by the validator of Khronos, SARIF by the schema in a package of Microsoft.
// Writes an object with the problems of each file.
const fs = require("fs");
const Ajv = require("ajv");
const { validateBytes } = require("gltf-validator");

const schema = require("@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json");
const ajv = new Ajv({ schemaId: "auto" });
ajv.addMetaSchema(require("ajv/lib/refs/json-schema-draft-04.json"));
const isSarif = ajv.compile(schema);

async function problems(path) {
  const bytes = fs.readFileSync(path);
  if (path.endsWith(".sarif")) {
    return isSarif(JSON.parse(bytes)) ? [] : isSarif.errors.map((one) => `${one.dataPath} ${one.message}`);
  }
  const { issues } = await validateBytes(new Uint8Array(bytes));
  return issues.messages.map((one) => `${one.code} ${one.pointer ?? one.offset}: ${one.message}`);
}

async function main(paths) {
  const found = {};
  for (const path of paths) found[path] = await problems(path);
  console.log(JSON.stringify(found));
}

main(process.argv.slice(2));
