//! Validation as a service: addresses come in on standard input, a line each, and what was found goes out
//! as a line of JSON each.
//!
//! ```text
//! echo tracts.zv | cargo run --package zvf --example service
//! ```

use std::{
    error::Error,
    io::{self, BufRead, Write},
};

use serde_json::json;
use zvf::{
    OpenOptions,
    validation::{Depth, Options},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options {
        depth: Depth::Consistency,
        // Who asks wants to know which rules are broken, not how often.
        most_of_a_rule: 3,
        ..Options::default()
    };
    let open = OpenOptions::default().anonymous(true);
    for address in io::stdin().lock().lines() {
        let address = address?;
        let line = match zvf::validate(&address, &open, &options).await {
            // A store that cannot be reached says nothing of itself.
            Err(error) => json!({ "address": address, "error": error.to_string() }),
            Ok(report) => {
                let findings = report.findings.iter();
                let findings = findings.map(|it| json!([it.rule.code, it.path, it.message]));
                json!({
                    "address": address,
                    "ok": report.is_ok(),
                    "findings": findings.collect::<Vec<_>>(),
                })
            }
        };
        writeln!(io::stdout(), "{line}")?;
    }
    Ok(())
}
