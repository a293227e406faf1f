//! Bars: required speeds, compared with the measured ones.

use serde_json::Value;

/// One requirement on a measured value.
pub(super) struct Bar {
    pub(super) what: String,
    pub(super) set: String,
    pub(super) is: f64,
    pub(super) must: f64,
    /// The direction of the bound.
    least: bool,
    pub(super) unit: &'static str,
}

impl Bar {
    pub(super) fn is_met(&self) -> bool {
        if self.least {
            self.is >= self.must
        } else {
            self.is <= self.must
        }
    }

    pub(super) fn bound(&self) -> String {
        let sign = if self.least { "≥" } else { "≤" };
        format!("{sign} {}{}", self.must, self.unit)
    }
}

/// Returns every bar that applies to a set of measurements.
pub(super) fn of(set: &Value) -> Vec<Bar> {
    let kind = set["kind"].as_str().unwrap_or_default();
    let mut bars = Bars {
        set,
        name: format!("{kind}, {}", set["vertices"]),
        found: Vec::new(),
    };
    bars.whole(kind);
    bars.boxes(kind);
    bars.objects(kind);
    if kind == "points" {
        bars.ratio("filter against Lance", "filter", "lance", "zvf plain", 2.0);
    }
    bars.ratio(
        "write against zarr-vectors",
        "write",
        "zarr-vectors",
        "zvf auto",
        8.0,
    );
    bars.ratio(
        "levels against zarr-vectors",
        "pyramid",
        "zarr-vectors",
        "zvf auto",
        10.0,
    );
    bars.ratio(
        "validation against zarr-vectors",
        "validate",
        "zarr-vectors",
        "zvf auto",
        50.0,
    );
    bars.throughput();
    for step in ["write", "pyramid"] {
        bars.memory(step);
    }
    bars.found
}

struct Bars<'a> {
    set: &'a Value,
    name: String,
    found: Vec<Bar>,
}

impl Bars<'_> {
    fn add(&mut self, what: &str, is: f64, must: f64, least: bool, unit: &'static str) {
        self.found.push(Bar {
            what: what.to_owned(),
            set: self.name.clone(),
            is,
            must,
            least,
            unit,
        });
    }

    fn median(&self, step: &str, side: &str) -> Option<f64> {
        self.set["steps"][step][side]["median"].as_f64()
    }

    /// The speed of zvf as a multiple of another program's.
    fn ratio(&mut self, what: &str, step: &str, other: &str, ours: &str, must: f64) {
        let pair = self.median(step, other).zip(self.median(step, ours));
        if let Some((other, ours)) = pair {
            self.add(what, other / ours, must, true, "×");
        }
    }

    fn whole(&mut self, kind: &str) {
        if matches!(kind, "points" | "streamlines") {
            self.ratio(
                "whole, uncompressed, against .npy",
                "whole",
                "npy",
                "zvf plain",
                0.4,
            );
        }
        self.ratio("whole against Lance", "whole", "lance", "zvf plain", 1.0);
        self.ratio("whole against TRX", "whole", "trx", "zvf plain", 1.0);
        let floor = self.median("floor", "zvf auto");
        if let Some((whole, floor)) = self.median("whole", "zvf auto").zip(floor) {
            self.add(
                "whole, compressed, over reading and decoding",
                whole / floor,
                1.3,
                false,
                "×",
            );
        }
    }

    fn boxes(&mut self, kind: &str) {
        let (peer, form) = match kind {
            "points" => ("lance", "zvf plain"),
            "graph" => ("parquet", "zvf auto"),
            "streamlines" => ("trx", "zvf plain"),
            _ => ("precomputed", "zvf auto"),
        };
        let must = if kind == "points" { 8.0 } else { 100.0 };
        for share in ["0.1", "1", "10"] {
            let step = format!("box {share}");
            let what = format!("box {share} % against {peer}");
            self.ratio(&what, &step, peer, form, 2.0);
            let what = format!("box {share} % against zarr-vectors");
            self.ratio(&what, &step, "zarr-vectors", "zvf auto", must);
        }
    }

    fn objects(&mut self, kind: &str) {
        let [plain, compressed] = match kind {
            "streamlines" => [0.05, 0.5],
            "skeletons" => [0.15, 0.9],
            _ => return,
        };
        let bounds = [("one", "zvf plain", plain), ("one", "zvf auto", compressed)];
        let hundred = [("hundred", "zvf plain", 1.0), ("hundred", "zvf auto", 20.0)];
        for (step, side, most) in bounds.into_iter().chain(hundred) {
            if let Some(median) = self.median(step, side) {
                let count = if step == "one" {
                    "one object"
                } else {
                    "100 objects"
                };
                self.add(
                    &format!("{count}, {side}"),
                    median * 1e3,
                    most,
                    false,
                    " ms",
                );
            }
        }
    }

    /// Raw bytes written per second and core.
    fn throughput(&mut self) {
        let raw = self.set["raw"].as_f64();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if let Some((raw, median)) = raw.zip(self.median("write", "zvf auto")) {
            let each = raw / 1e6 / median / cores as f64;
            self.add("write, compressed, per core", each, 100.0, true, " MB/s");
        }
    }

    fn memory(&mut self, step: &str) {
        let raw = self.set["raw"].as_f64();
        let peak = self.set["steps"][step]["zvf auto"]["peak"].as_f64();
        if let Some((raw, peak)) = raw.zip(peak) {
            let what = match step {
                "write" => "memory of writing, including the input, over raw",
                _ => "memory of levels, over raw",
            };
            self.add(what, peak / raw, 2.0, false, "×");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bars_are_met_by_figures_alone() {
        let set = json!({
            "kind": "points", "vertices": 1000, "raw": 1_000_000,
            "steps": {
                "whole": {"npy": {"median": 1.0}, "zvf plain": {"median": 2.0}, "zvf auto": {"median": 2.0}},
                "floor": {"zvf auto": {"median": 1.0}},
                "write": {"zvf auto": {"median": 0.001, "peak": 3_000_000}},
            },
        });
        let bars = of(&set);
        let met = |what: &str| {
            let found = bars.iter().find(|bar| bar.what.starts_with(what));
            found.map(Bar::is_met)
        };
        assert_eq!(met("whole, uncompressed"), Some(true));
        assert_eq!(met("whole, compressed"), Some(false));
        assert_eq!(met("memory of writing"), Some(false));
        assert_eq!(met("whole against Lance"), None);
    }
}
