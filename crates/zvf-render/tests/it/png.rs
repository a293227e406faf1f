//! Reads PNG files back, by the standard and not by the code that wrote them.

use std::io::Read;

use flate2::{Crc, read::ZlibDecoder};

/// Width and dots of a file of eight bits of red, green and blue.
pub(crate) fn decode(file: &[u8]) -> (usize, Vec<[u8; 3]>) {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let (mut width, mut packed, mut kinds) = (0, Vec::new(), Vec::new());
    while !rest.is_empty() {
        let length = usize::try_from(u32::from_be_bytes(rest[..4].try_into().unwrap())).unwrap();
        let (kind, body) = (&rest[4..8], &rest[8..8 + length]);
        let mut crc = Crc::new();
        crc.update(&rest[4..8 + length]);
        assert_eq!(crc.sum().to_be_bytes(), rest[8 + length..12 + length]);
        kinds.push(String::from_utf8(kind.to_vec()).unwrap());
        match kind {
            b"IHDR" => {
                width = usize::try_from(u32::from_be_bytes(body[..4].try_into().unwrap())).unwrap();
                assert_eq!(body[8..], [8, 2, 0, 0, 0]);
            }
            b"IDAT" => packed.extend(body),
            _ => {}
        }
        rest = &rest[12 + length..];
    }
    assert_eq!(kinds.first().unwrap(), "IHDR");
    assert_eq!(kinds.last().unwrap(), "IEND");
    let mut rows = Vec::new();
    ZlibDecoder::new(&packed[..])
        .read_to_end(&mut rows)
        .unwrap();
    let mut above = vec![0_u8; width * 3];
    let mut dots = Vec::new();
    for row in rows.chunks_exact(1 + width * 3) {
        let mut out: Vec<u8> = Vec::new();
        for (at, byte) in row[1..].iter().enumerate() {
            let left = if at < 3 { 0 } else { out[at - 3] };
            let corner = if at < 3 { 0 } else { above[at - 3] };
            let up = above[at];
            let guess = match row[0] {
                0 => 0,
                1 => left,
                2 => up,
                3 => u8::try_from(u16::midpoint(left.into(), up.into())).unwrap(),
                4 => {
                    let p = i32::from(left) + i32::from(up) - i32::from(corner);
                    let far = |of: u8| (p - i32::from(of)).abs();
                    if far(left) <= far(up) && far(left) <= far(corner) {
                        left
                    } else if far(up) <= far(corner) {
                        up
                    } else {
                        corner
                    }
                }
                filter => panic!("filter {filter}"),
            };
            out.push(byte.wrapping_add(guess));
        }
        dots.extend(out.chunks_exact(3).map(|dot| [dot[0], dot[1], dot[2]]));
        above = out;
    }
    (width, dots)
}
