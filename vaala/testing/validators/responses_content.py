"""The content parts of messages and of the outputs of calls."""

from __future__ import annotations

import re
from collections.abc import Collection

from vaala.testing.validators import responses_rules as rules
from vaala.testing.validators.common import (
    JsonArray,
    JsonObject,
    Report,
    as_object,
    child,
    is_blank,
    show,
)
from vaala.testing.validators.values import decoded_size, is_text, is_web_url, shape

INPUT_PARTS = ("input_text", "input_image", "input_file")
OUTPUT_PARTS = ("output_text", "refusal")
_SHAPES = {
    "input_text": shape("type text"),
    "input_image": shape("type", "image_url file_id detail"),
    "input_file": shape("type", "file_data file_id file_url filename detail"),
    "output_text": shape("type text", "annotations logprobs"),
    "refusal": shape("type refusal"),
}
_DATA_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,")
_FILE_DATA_URL = re.compile(r"data:[a-z]+/[a-zA-Z0-9.+-]+;base64,")
_DETAILS = ("auto", "low", "high", "original")


def check_parts(parts: JsonArray, allowed: Collection[str], path: str, report: Report) -> None:
    if not parts:
        report.add(rules.CONTENT_EMPTY, path, "no content parts")
    for index, value in enumerate(parts):
        part_path = child(path, index)
        part = as_object(value)
        kind = None if part is None else part.get("type")
        if part is None or not isinstance(kind, str) or kind not in allowed:
            message = f"{show(kind)} is none of {', '.join(allowed)}"
            report.add(rules.PART, part_path, message)
        elif _SHAPES[kind].check(part, rules.PART, part_path, report):
            _check_part(part, kind, part_path, report)


def check_text(text: str, path: str, report: Report) -> None:
    if is_blank(text):
        report.add(rules.CONTENT_EMPTY, path, f"blank text {show(text)}")


def _check_part(part: JsonObject, kind: str, path: str, report: Report) -> None:
    if kind == "input_image":
        _check_image(part, path, report)
    elif kind == "input_file":
        _check_file(part, path, report)
    else:
        key = "refusal" if kind == "refusal" else "text"
        text = part[key]
        if isinstance(text, str):
            check_text(text, child(path, key), report)
        else:
            report.add(rules.PART, child(path, key), f"is no text but {type(text).__name__}")
        if not isinstance(part.get("annotations", []), list):
            report.add(rules.PART, child(path, "annotations"), "is no array")


def _check_image(part: JsonObject, path: str, report: Report) -> None:
    detail = part.get("detail")
    if detail is not None and detail not in _DETAILS:
        report.add(rules.IMAGE, child(path, "detail"), f"is none of {', '.join(_DETAILS)}")
    url, file_id = part.get("image_url"), part.get("file_id")
    if (url is None) == (file_id is None):
        report.add(rules.IMAGE, path, "needs either 'image_url' or 'file_id'")
    elif url is not None and not _is_address(url, _DATA_URL):
        message = f"{show(url)} is neither a web address nor base64 of an image"
        report.add(rules.IMAGE, child(path, "image_url"), message)
    elif file_id is not None and not is_text(file_id):
        report.add(rules.IMAGE, child(path, "file_id"), f"{show(file_id)} is no id")


def _check_file(part: JsonObject, path: str, report: Report) -> None:
    sources = [key for key in ("file_data", "file_id", "file_url") if part.get(key) is not None]
    if len(sources) != 1:
        report.add(rules.FILE, path, "needs one of 'file_data', 'file_id' and 'file_url'")
    elif sources == ["file_data"] and not _is_address(part["file_data"], _FILE_DATA_URL):
        report.add(rules.FILE, child(path, "file_data"), "is no data URL with base64")
    elif not is_text(part[sources[0]]):
        report.add(rules.FILE, child(path, sources[0]), "is no text")
    if "file_data" in sources and not is_text(part.get("filename")):
        report.add(rules.FILE, path, "data without a 'filename'")


def _is_address(value: object, data_url: re.Pattern[str]) -> bool:
    if not isinstance(value, str):
        return False
    head = data_url.match(value)
    if head is None:
        return is_web_url(value)
    return decoded_size(value[head.end() :]) is not None
