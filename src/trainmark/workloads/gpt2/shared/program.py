"""GPT-2 as the common loop sees it, whatever the framework."""

import os

from trainmark.workloads.common.recipe import Recipes
from trainmark.workloads.gpt2.shared import model
from trainmark.workloads.transformers.spec import DecoderSpec, TransformerRecipe

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recipes")
RECIPES = Recipes(FOLDER, TransformerRecipe, default="nanogpt")
SPEC = DecoderSpec("gpt2", "GPT-2", model, RECIPES, length=1024)
main = SPEC.main
