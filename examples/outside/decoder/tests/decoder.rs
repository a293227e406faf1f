//! The image is written by these commands:
//!
//! ```text
//! zvf create fibres.zv --kind polylines --from fibres.csv --dtype float32 --chunk-shape 10,10,10 \
//!     --bounds 0,0,0,20,20,20 --table-compression none --no-checksum
//! tar --sort=name --owner=0 --group=0 --mtime=@0 --format=ustar -cf fibres.tar -C fibres.zv .
//! ```

use decoder::read_object;

/// A program for a microcontroller has the same line.
static IMAGE: &[u8] = include_bytes!("fibres.tar");

fn object(image: &[u8], row: u32) -> Option<Vec<[f32; 3]>> {
    let mut vertices = Vec::new();
    read_object(image, row, |vertex| vertices.push(vertex))?;
    Some(vertices)
}

#[test]
fn reads_an_object_that_crosses_chunks_and_returns() {
    let wanted =
        [[1.0, 2.0, 3.0], [9.5, 2.0, 3.0], [12.0, 2.0, 3.0], [18.0, 4.0, 3.0], [8.0, 4.0, 3.0]];
    assert_eq!(object(IMAGE, 0).as_deref(), Some(&wanted[..]));
    assert_eq!(object(IMAGE, 1).as_deref(), Some(&[[3.0, 3.0, 3.0], [5.0, 5.0, 5.25]][..]));
    assert_eq!(object(IMAGE, 2).as_deref(), Some(&[[15.0; 3]][..]));
}

#[test]
fn a_missing_object_and_a_truncated_image_are_none() {
    assert_eq!(object(IMAGE, 3), None);
    let whole = object(IMAGE, 0);
    let truncated = (0..IMAGE.len()).step_by(32).map(|end| object(&IMAGE[..end], 0));
    let read: Vec<_> = truncated.flatten().collect();
    assert!(!read.is_empty() && read.len() < IMAGE.len() / 32);
    assert!(read.iter().all(|found| Some(found) == whole.as_ref()));
}
