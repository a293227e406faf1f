//! Reads objects of a store from flash memory: no std, no allocation, no decompression. The image
//! is a tar archive, written by the commands in `tests/decoder.rs`.
#![no_std]

use core::fmt::{self, Arguments, Write};
use zvf_format::numeric::{Dtype, NumericRows};
use zvf_format::{fragment::FragmentIndex, manifest::ObjectManifest, vlen::VlenFrame};

/// Calls `emit` with each vertex of the object in `row` of the object index, in order. `None` if a
/// part of the object is damaged or not in the image.
pub fn read_object(image: &[u8], row: u32, mut emit: impl FnMut([f32; 3])) -> Option<()> {
    let manifests = cell(image, format_args!("./0/object_index/manifests/c/0"))?;
    let manifest = ObjectManifest::parse(manifests.get(row)?, 3).ok()?;
    let dtype = Dtype::parse("float32").ok()?;
    for block in manifest.iter() {
        // The bounds of the store begin at 0, so that chunks and cells have equal numbers.
        let [x, y, z] = [0, 1, 2].map(|axis| block.chunk.get(axis).unwrap_or_default());
        let index = cell(image, format_args!("./0/vertex_fragments/c/{x}/{y}/{z}"))?;
        let index = FragmentIndex::parse(index.only()?).ok()?;
        let vertices = cell(image, format_args!("./0/vertices/c/{x}/{y}/{z}"))?;
        let vertices = NumericRows::parse(vertices.only()?, dtype, 3.try_into().ok()?).ok()?;
        let values = vertices.elements::<f32>()?;
        for fragment in block.fragments.iter() {
            for row in index.rows(fragment)?.iter() {
                let first = usize::try_from(row).ok()?.checked_mul(3)?;
                emit([values.get(first)?, values.get(first + 1)?, values.get(first + 2)?]);
            }
        }
    }
    Some(())
}

/// Finds a file in the archive: a header of 512 bytes, then the contents in blocks of 512 bytes.
fn cell<'a>(mut image: &'a [u8], path: Arguments<'_>) -> Option<VlenFrame<'a>> {
    loop {
        let (header, rest) = image.split_at_checked(512)?;
        let size = str::from_utf8(&header[124..135]).ok()?;
        let size = usize::from_str_radix(size, 8).ok()?;
        let mut name = Name(&header[..100]);
        if name.write_fmt(path).is_ok() && name.0.first() == Some(&0) {
            return VlenFrame::parse(rest.get(..size)?).ok();
        }
        image = rest.get(size.checked_next_multiple_of(512)?..)?;
    }
}

/// The rest of a name after the text compared with it.
struct Name<'a>(&'a [u8]);

impl Write for Name<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text.as_bytes()).ok_or(fmt::Error)?;
        Ok(())
    }
}
