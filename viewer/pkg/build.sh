#!/bin/sh
# Builds the package into dist. The same sources give the same bytes, wherever the folders are.
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
target=${CARGO_TARGET_DIR:-$root/target/wasm}
# Clippy in the place of the compiler would optimize less.
unset RUSTC_WORKSPACE_WRAPPER
flags="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$root=/zvf"
cd "$root/crates/zvf-wasm"
export CARGO_TARGET_DIR="$target"
RUSTFLAGS="$flags" cargo build --release --locked --target wasm32-unknown-unknown -p zvf-wasm
cargo run --quiet --locked -p zvf-bindgen -- \
    "$target/wasm32-unknown-unknown/release/zvf_wasm.wasm" "$target/bindgen"
cd "$root/viewer/pkg"
npm ci --silent
node build.mjs "$target/bindgen"
