"""An MCP server on stdio: with ``python mcp_server.py FOLDER``, ``slow`` writes its pid there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import FastMCP, Image
from pydantic import BaseModel

server = FastMCP("shop", log_level="ERROR")
FOLDER = Path(sys.argv[1])


class Product(BaseModel):
    product_id: str
    name: str


@server.tool()
def search(query: str, limit: int = 2) -> list[Product]:
    """Finds products."""
    return [Product(product_id=f"P{n}", name=f"{query} {n}") for n in range(limit)]


@server.tool()
def read_product(product_id: str) -> Product:
    """Reads one product."""
    return Product(product_id=product_id, name=f"name of {product_id}")


@server.tool()
def describe(product_id: str) -> str:
    """Describes a product."""
    return f"{product_id} has 8 GB"


@server.tool()
def untyped(query: str) -> dict[str, Any]:
    """Returns whatever it likes."""
    return {"name": query, "more": [1, 2]}


@server.tool(structured_output=False)
def as_text(query: str) -> str:
    """Returns JSON as text."""
    return json.dumps([{"name": f"{query} a"}, {"name": f"{query} b"}])


@server.tool(structured_output=False)
def words(query: str) -> list[str]:
    """Returns several texts."""
    return [f"{query} one", f"{query} two"]


@server.tool()
def nothing(query: str) -> list[Product]:
    """Finds nothing."""
    return []


@server.tool()
def picture() -> Image:
    """Returns a picture."""
    return Image(data=b"\x89PNG", format="png")


@server.tool()
def orders(query: str, customer: str) -> str:
    """Finds the asker's orders."""
    return f"{query} of {customer}"


@server.tool()
def fails(query: str) -> str:
    """Fails."""
    raise ValueError(f"no luck with {query}")


@server.tool()
async def slow(query: str) -> str:
    """Takes its time."""
    (FOLDER / "slow").write_text(str(os.getpid()))
    await asyncio.sleep(60)
    return query


@server.tool()
def dies(query: str) -> str:
    """Ends the server."""
    os._exit(3)


server.run("stdio")
