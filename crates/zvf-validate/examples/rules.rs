//! Prints the page of rules: `cargo xtask rules` keeps it as docs/rules.md.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

fn main() {
    print!("{}", zvf_validate::rules::page());
}
