//! try
use zvf::Dataset;
use zvf_query::{Query, Selection, Shape};
fn main() {
    let rt = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for path in std::env::args().skip(1) {
        rt.block_on(async {
            let ds = match Dataset::open(&path).await { Ok(d) => d, Err(e) => { println!("{path}: open: {e}"); return; } };
            for lv in ds.levels() {
                for shape in [None, Some(Shape::Points), Some(Shape::Paths), Some(Shape::Links)] {
                    let mut q = Query::new().level(zvf_query::LevelChoice::Number(lv.level)).columns(Selection::none());
                    q.shape = shape;
                    match ds.session().query(&q).await {
                        Ok(a) => println!("{path} {} {shape:?}: {} vertices, {:?} parts, {:?} links, {} objects {:?}", lv.level, a.positions.len(), a.parts.map(|p| p.objects.len()), a.links.map(|l| (l.width, l.ends.len())), a.objects.len(), a.notes.len()),
                        Err(e) => { let mut t = e.to_string(); let mut s = std::error::Error::source(&e); while let Some(c) = s { t = format!("{t}: {c}"); s = c.source(); } println!("{path} {} {shape:?}: ERROR {t}", lv.level) }
                    }
                }
            }
        });
    }
}
