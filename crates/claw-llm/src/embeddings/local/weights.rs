//! A matrix from a safetensors file: eight bytes of length, a header in JSON, numbers.

use serde_json::Value;

/// The longest header, in bytes.
const LONGEST_HEADER: usize = 100 << 20;
/// The most numbers of a matrix.
const MOST: usize = 1 << 30;

/// A matrix, row by row.
#[derive(Debug)]
pub(super) struct Matrix {
    columns: usize,
    numbers: Vec<f32>,
}

impl Matrix {
    pub(super) fn rows(&self) -> usize {
        self.numbers.len() / self.columns
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns a row; empty if there is none.
    pub(super) fn row(&self, at: usize) -> &[f32] {
        self.numbers.get(at * self.columns..(at + 1) * self.columns).unwrap_or_default()
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is too short")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > LONGEST_HEADER || length > rest.len() {
            return Err(format!("its header claims {length} bytes"));
        }
        let (header, data) = rest.split_at(length);
        let header: Value =
            serde_json::from_slice(header).map_err(|error| format!("its header is not JSON: {error}"))?;
        let tensors = header.as_object().ok_or("its header is not a JSON object")?;
        let is_matrix = |tensor: &&Value| {
            tensor.get("shape").and_then(Value::as_array).is_some_and(|shape| shape.len() == 2)
        };
        let named = tensors.get("embeddings").filter(is_matrix);
        let mut matrices =
            tensors.iter().filter(|(name, _)| *name != "__metadata__").map(|(_, tensor)| tensor);
        let tensor = match named {
            Some(tensor) => tensor,
            None => {
                let only: Vec<&Value> = matrices.by_ref().filter(is_matrix).collect();
                let [tensor] = only[..] else {
                    return Err(format!("it has {} matrices and none is named `embeddings`", only.len()));
                };
                tensor
            }
        };
        Self::of(tensor, data)
    }

    fn of(tensor: &Value, data: &[u8]) -> Result<Self, String> {
        let pair = |field: &str| -> Option<[usize; 2]> {
            let [one, other] = &tensor.get(field)?.as_array()?[..] else { return None };
            Some([usize::try_from(one.as_u64()?).ok()?, usize::try_from(other.as_u64()?).ok()?])
        };
        let [rows, columns] = pair("shape").ok_or("the matrix has no valid `shape`")?;
        let [begin, end] = pair("data_offsets").ok_or("the matrix has no `data_offsets`")?;
        let count = rows.checked_mul(columns).filter(|count| (1..=MOST).contains(count));
        let count = count.ok_or_else(|| format!("a matrix of {rows} by {columns} cannot be used"))?;
        let bytes = data.get(begin..end).ok_or("the matrix lies outside of the file")?;
        let numbers: Vec<f32> = match tensor.get("dtype").and_then(Value::as_str) {
            Some("F32") => {
                bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
            }
            Some("F16") => {
                bytes.as_chunks::<2>().0.iter().map(|number| half(u16::from_le_bytes(*number))).collect()
            }
            Some("BF16") => {
                let wide = |number: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*number)) << 16);
                bytes.as_chunks::<2>().0.iter().map(wide).collect()
            }
            other => {
                return Err(format!("the number type {other:?} is not supported; use F32, F16 or BF16"));
            }
        };
        if numbers.len() != count || numbers.iter().any(|number| !number.is_finite()) {
            return Err(format!("the matrix must have {count} finite numbers, and it does not"));
        }
        Ok(Self { columns, numbers })
    }
}

/// Converts a 16-bit number.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) =
        (u32::from(bits >> 15), u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => return if sign == 1 { -1.0 } else { 1.0 } * (fraction as f32) * 2.0_f32.powi(-24),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign << 31 | magnitude)
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves_are_what_they_are() {
        for (bits, number) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
        ] {
            assert_eq!(half(bits), number, "{bits:x}");
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
