"""A Llama as the common loop sees it, whatever the framework."""

import os

from trainmark.workloads.common.recipe import Recipes
from trainmark.workloads.llama.shared import model
from trainmark.workloads.transformers.spec import DecoderSpec, TransformerRecipe

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recipes")
RECIPES = Recipes(FOLDER, TransformerRecipe, default="llama3")
SPEC = DecoderSpec("llama", "a Llama 3", model, RECIPES, length=4096)
main = SPEC.main
