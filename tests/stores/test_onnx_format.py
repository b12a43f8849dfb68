"""The bytes of models, as the package onnx parses them."""

from __future__ import annotations

import numpy as np
import onnx

from casewright.stores.encoders import onnx_format


def test_written_model_equals_the_same_model_built_by_onnx() -> None:
    weight = np.zeros((3, 400), dtype=np.int8)
    parsed = onnx.load_from_string(
        onnx_format.model(
            [
                onnx_format.node("Split", ["a"], ["b", "", "c"], axis=-1),
                onnx_format.node("Own", ["b", "w"], ["d"], "own", epsilon=1e-5, heads=300),
                onnx_format.node("Constant", [], ["e"], value_ints=(0, -1, 2)),
            ],
            {"a": np.float32, "m": np.int32},
            {"d": np.float32},
            {"w": weight},
            "own",
        )
    )
    helper, types = onnx.helper, onnx.TensorProto
    expected = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("Split", ["a"], ["b", "", "c"], axis=-1),
                helper.make_node("Own", ["b", "w"], ["d"], domain="own", epsilon=1e-5, heads=300),
                helper.make_node("Constant", [], ["e"], value_ints=(0, -1, 2)),
            ],
            "casewright",
            [
                helper.make_tensor_value_info("a", types.FLOAT, None),
                helper.make_tensor_value_info("m", types.INT32, None),
            ],
            [helper.make_tensor_value_info("d", types.FLOAT, None)],
            [
                onnx.TensorProto(
                    name="w",
                    data_type=types.INT8,
                    dims=weight.shape,
                    data_location=types.EXTERNAL,
                    external_data=[
                        onnx.StringStringEntryProto(key=key, value=value)
                        for key, value in (
                            ("location", "memory"),
                            ("offset", "0"),
                            ("length", "1200"),
                        )
                    ],
                )
            ],
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
        ir_version=8,
    )
    assert onnx.printer.to_text(parsed) == onnx.printer.to_text(expected)
