//! Links and geometry.

use zvf::validation::Options;
use zvf_testkit::golden::Golden;

use super::{files, findings};

#[test]
fn dump() {
    for name in ["zvf-06", "zvf-07", "zvf-08", "zvf-09"] {
        let golden = Golden::open(name);
        let mut stores: Vec<String> = golden
            .files()
            .filter_map(|(path, _)| {
                let root = path.strip_suffix("/0/zarr.json")?;
                (!root.ends_with("/links") && !root.contains("/links/")).then(|| root.to_owned())
            })
            .filter(|root| {
                golden
                    .files()
                    .any(|(path, _)| path == format!("{root}/zarr.json"))
            })
            .filter(|root| {
                let root = root.rsplit('/').next().unwrap();
                root.ends_with(".zv") || root.ends_with(".zarrvectors")
            })
            .collect();
        stores.sort();
        stores.dedup();
        for store in stores {
            let found = findings(&files(&golden, &store), &Options::default());
            println!("{name}/{store}");
            for line in found {
                println!("    {line}");
            }
        }
    }
}
