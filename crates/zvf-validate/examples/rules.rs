//! Prints the page of rules, which `cargo xtask rules` writes to docs/rules.md.
#![expect(clippy::print_stdout, reason = "the example writes to standard output")]

fn main() {
    print!("{}", zvf_validate::rules::page());
}
