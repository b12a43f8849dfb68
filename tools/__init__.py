"""Tool specifications, toolboxes, and adapters for functions, stores, LangChain and MCP."""

from casewright.tools.alias import alias, original
from casewright.tools.from_file import tool_from_record, toolbox_from_file, toolbox_to_records
from casewright.tools.from_function import tool, tool_from_function
from casewright.tools.from_langchain import tool_from_langchain
from casewright.tools.from_mcp import tools_from_mcp
from casewright.tools.from_store import Search, tool_from_store
from casewright.tools.parameter import Parameter, Source
from casewright.tools.results import evidence_text, rows, whole_number
from casewright.tools.spec import NO_EVIDENCE, CallContext, Tenant, Toolbox, ToolExample, ToolSpec

__all__ = [
    "NO_EVIDENCE",
    "CallContext",
    "Parameter",
    "Search",
    "Source",
    "Tenant",
    "ToolExample",
    "ToolSpec",
    "Toolbox",
    "alias",
    "evidence_text",
    "original",
    "rows",
    "tool",
    "tool_from_function",
    "tool_from_langchain",
    "tool_from_record",
    "tool_from_store",
    "toolbox_from_file",
    "toolbox_to_records",
    "tools_from_mcp",
    "whole_number",
]
