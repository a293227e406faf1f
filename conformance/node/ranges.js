// A plain web server with range requests: `node ranges.js FOLDER PORT`.
const express = require("express");

const [folder, port] = process.argv.slice(2);
express().use(express.static(folder)).listen(Number(port), "127.0.0.1");
