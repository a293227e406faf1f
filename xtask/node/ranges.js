// A plain web server that answers ranges: `node ranges.js FOLDER PORT`.
const express = require("express");

const [folder, port] = process.argv.slice(2);
express().use(express.static(folder)).listen(Number(port), "127.0.0.1");
