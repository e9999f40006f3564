//! The type of a GID in what two ends tell each other: `"v1"` or `"v2"`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::RoceVersion;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    V1,
    V2,
}

/// The word for people.
pub fn name(gid_type: RoceVersion) -> &'static str {
    match gid_type {
        RoceVersion::V1 => "v1",
        RoceVersion::V2 => "v2",
    }
}

pub fn serialize<S: Serializer>(gid_type: &Option<RoceVersion>, to: S) -> Result<S::Ok, S::Error> {
    let word = gid_type.map(|gid_type| match gid_type {
        RoceVersion::V1 => Word::V1,
        RoceVersion::V2 => Word::V2,
    });
    word.serialize(to)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<RoceVersion>, D::Error> {
    let word = Option::<Word>::deserialize(from)?;
    Ok(word.map(|word| match word {
        Word::V1 => RoceVersion::V1,
        Word::V2 => RoceVersion::V2,
    }))
}
