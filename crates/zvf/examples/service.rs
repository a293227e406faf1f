//! Validation as a service: reads addresses from standard input, one a line, and writes the findings
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
use zvf::{Depth, OpenOptions, ValidateOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The report says which rules are broken; three findings of each are enough for that.
    let options = ValidateOptions::default()
        .depth(Depth::Consistency)
        .max_findings_per_rule(3);
    let open = OpenOptions::default().anonymous(true);
    for address in io::stdin().lock().lines() {
        let address = address?;
        let validated = async {
            let store = open.open(&address)?;
            zvf::validate(store, &options).await
        };
        let line = match validated.await {
            // A store that cannot be reached has no report.
            Err(error) => json!({ "address": address, "error": error.to_string() }),
            Ok(report) => {
                let findings = report
                    .findings
                    .iter()
                    .map(|it| json!([it.rule.code, it.path, it.message]));
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
